// Time to read the receipt before the redirect. A touch or a key keeps the page open for longer (WCAG 2.2, 2.2.1).
const LEAVE_AFTER_SECONDS = 8
const RELOAD_AFTER_MS = 5000
// The pause has a random part, so that pages rejected together do not retry simultaneously.
const POLL_AFTER_MS = 2000
const POLL_SPREAD_MS = 2000
// Longer than the browser's own reconnection, which takes 1 to 4 seconds plus the response time.
const LOST_AFTER_MS = 6000
// After two missed heartbeats the connection is considered dead, even if the browser reports it as open.
const HEARTBEATS_MISSED = 2.5
const APP_OPENS_WITHIN_MS = 2000

const find = (selector) => document.querySelector(selector)
let view = find('.view')
// Milliseconds by which the customer's clock is ahead of the service's clock, which decides about the expiry.
let ahead = Date.now() - Number(view.dataset.now)
const { events } = document.body.dataset
const lost = find('.lost')
const hint = find('.hint')
let over = 'final' in view.dataset
let isBack = false
let drawing = 0
let redrawing
let source
let again
let losing
let dying
let opening
let ticking
// Query string of the event stream's URL, until a first heartbeat shows that the service received it.
let returned = ''

// The page's own address: with the app from which the customer has returned, without the reload of a page that had no
// JavaScript.
function address() {
  const query = new URLSearchParams(location.search)
  query.delete('reload')
  if (isBack) {
    query.set('back', history.state.at)
    if (history.state.app) query.set('app', history.state.app)
  }
  return `${location.pathname}?${query}`
}

// Draws the view that the service sends for the current state. Only the last of several concurrent calls draws.
async function draw() {
  const mine = ++drawing
  clearTimeout(redrawing)
  const response = await fetch(address()).catch(() => undefined)
  if (mine !== drawing) return
  // After 404 the reloaded page explains why the payment is gone. A proxy's error page is not drawn.
  if (response?.status === 404) return location.reload()
  if (!response?.headers.get('x-payment-state')) {
    redrawing = setTimeout(draw, RELOAD_AFTER_MS)
    return
  }
  const text = await response.text()
  if (mine !== drawing) return
  // The policy allows only the style of this document, and the browser would report another one as a violation.
  const page = new DOMParser().parseFromString(text.replace(/<style>.*?<\/style>/gs, ''), 'text/html')
  const before = view.dataset.state
  const next = page.querySelector('.view')
  next.classList.add('drawn')
  view.replaceWith(next)
  view = next
  // The language link has to keep what the view knows, such as the app from which the customer has returned.
  find('.lang').href = page.querySelector('.lang').href
  ahead = Date.now() - Number(view.dataset.now)
  document.title = page.title
  showHint('')
  over = 'final' in view.dataset
  if (over) hideLost()
  equip()
  if (view.dataset.state === before) return
  // Focuses the heading, so that screen readers read it and the focus does not stay on a removed element.
  view.querySelector('h2')?.focus()
  if (view.dataset.state === 'paid') leave()
}

// Redirects to the merchant once the page is visible. A key, a touch or a change of focus cancels the redirect.
function leave() {
  if (document.hidden) return document.addEventListener('visibilitychange', leave, { once: true })
  const [text, seconds, back, stayHere] = ['.leaving', '.seconds', '.back', '.stay'].map(find)
  const end = Date.now() + LEAVE_AFTER_SECONDS * 1000
  let timer
  const tick = () => {
    const left = Math.ceil((end - Date.now()) / 1000)
    if (left <= 0) return location.replace(back.getAttribute('href'))
    seconds.textContent = ` (${left})`
    timer = setTimeout(tick, 1000)
  }
  const stay = () => {
    clearTimeout(timer)
    // The texts keep their space in the layout, because otherwise the pressed element would move.
    for (const element of [text, seconds, stayHere]) element.style.visibility = 'hidden'
  }
  text.hidden = stayHere.hidden = false
  tick()
  for (const event of ['keydown', 'pointerdown']) addEventListener(event, stay)
  // relatedTarget is null when the window itself gets the focus, such as when the customer returns from the wallet
  // app.
  addEventListener('focusin', ({ relatedTarget }) => relatedTarget && stay())
}

// Shows the controls that need a script, and continues the time bar, which restarts in each new view.
function equip() {
  // Hides the copy buttons over plain http, where browsers offer no clipboard.
  for (const copy of document.querySelectorAll('.copy')) copy.hidden = !navigator.clipboard
  const save = find('.save')
  if (save) save.hidden = false
  const bar = find('.bar i')
  if (bar) bar.style.animationDelay = `${secondsLeft() - Number(view.dataset.seconds)}s`
  countDown()
}

const secondsLeft = () => Math.max(0, Math.ceil((Number(view.dataset.expires) + ahead - Date.now()) / 1000))

function countDown() {
  clearTimeout(ticking)
  const left = find('.left')
  if (!left) return
  const seconds = secondsLeft()
  if (seconds === 0) {
    left.textContent = ''
    // The service decides about the expiry: if it still reports the order as open, for example after a change of the
    // customer's clock, the page shows the ways to pay again.
    find('.ways').hidden = true
    find('.time-up').hidden = false
    return
  }
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  const { timeLeft, hoursLeft, daysLeft } = left.dataset
  left.textContent =
    minutes < 60
      ? timeLeft.replace('{time}', `${minutes}:${String(seconds % 60).padStart(2, '0')}`)
      : hours < 48
        ? hoursLeft.replace('{hours}', hours).replace('{minutes}', minutes % 60)
        : daysLeft.replace('{days}', Math.floor(hours / 24)).replace('{hours}', hours % 24)
  ticking = setTimeout(countDown, 1000)
}

// Delays the message, because most lost connections are restored within a few seconds.
function expectConnection() {
  losing ??= setTimeout(sayLost, navigator.onLine ? LOST_AFTER_MS : 0)
}

function sayLost() {
  lost.hidden = over
}

function expectHeartbeat(everyMs) {
  returned = ''
  clearTimeout(dying)
  dying = setTimeout(listenAnew, everyMs * HEARTBEATS_MISSED)
}

function hideLost() {
  clearTimeout(losing)
  losing = undefined
  lost.hidden = true
}

// A view that hides its ways to pay, because the time is up by the customer's clock, is drawn again too.
function show(key) {
  if (key !== view.dataset.key || find('.ways')?.hidden) draw()
}

function listen() {
  if (source) source.close()
  clearTimeout(again)
  const mine = new EventSource(events + returned)
  source = mine
  expectConnection()
  mine.onopen = hideLost
  mine.addEventListener('heartbeat', ({ data }) => expectHeartbeat(Number(data)))
  mine.onmessage = ({ data }) => show(data)
  mine.addEventListener('over', () => mine.close())
  // EventSource reconnects by itself after a lost connection, but not after an error response.
  mine.onerror = () => {
    expectConnection()
    if (mine.readyState !== EventSource.CLOSED) return
    again = setTimeout(pollStatus, POLL_AFTER_MS + Math.random() * POLL_SPREAD_MS)
  }
}

// Polls the state with HEAD requests while the event stream is rejected, which may last long.
async function pollStatus() {
  const response = await fetch(location.pathname, { method: 'HEAD' }).catch(() => undefined)
  if (response?.status === 404) return location.reload()
  const key = response?.headers.get('x-payment-state')
  if (key) {
    hideLost()
    show(key)
  }
  if (!over) listen()
}

function showHint(text) {
  clearTimeout(opening)
  hint.textContent = text
  hint.hidden = !text
}

// history.state stores when the customer chose an app, because a phone may discard the page while the app is in front.
function press(link) {
  history.replaceState({ at: Date.now() - ahead, app: link.dataset.app }, '')
  isBack = false
  showHint('')
  opening = setTimeout(showHint, APP_OPENS_WITHIN_MS, hint.dataset.nothingOpened)
}

// A customer who returns from an app waits for the payment. `?back` reports each return to the service once. The
// service decides whether the bank has already reported a result.
function comeBack() {
  if (document.hidden || !history.state) return
  returned = '?back'
  if (over || isBack) return
  isBack = true
  draw()
}

document.addEventListener('click', async ({ target }) => {
  const link = target.closest('.apps a')
  if (link) press(link)
  if (target.matches('.save')) print()
  if (!target.matches('.copy')) return
  const copied = target.previousElementSibling
  await navigator.clipboard.writeText(copied.dataset.text ?? copied.textContent)
  target.textContent = target.dataset.copied
})

equip()
if (!over) {
  comeBack()
  listen()
  // An app, or the system's list of apps, takes the focus from the page.
  for (const event of ['blur', 'pagehide', 'visibilitychange']) addEventListener(event, () => clearTimeout(opening))
  // Sends the sandbox form by script, so that the page stays open and gets a simulated payment by events like a real
  // one.
  find('.sandbox')?.addEventListener('submit', async (event) => {
    event.preventDefault()
    const body = new URLSearchParams(new FormData(event.target, event.submitter))
    const response = await fetch(event.target.action, { method: 'POST', redirect: 'manual', body })
    if (response.type !== 'opaqueredirect') return alert(await response.text())
    event.target.parentElement.open = false
  })
  // Reconnects when the page becomes visible, because a phone drops the connection while a wallet app is in front.
  document.addEventListener('visibilitychange', () => {
    comeBack()
    if (!document.hidden) listenAnew()
  })
  addEventListener('online', listenAnew)
  addEventListener('offline', sayLost)
}

function listenAnew() {
  if (over) return
  hideLost()
  listen()
}
