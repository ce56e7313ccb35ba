const { state, expires, now, events } = document.body.dataset
// Time to read the UTR before the redirect. A touch or a key keeps the page open for longer (WCAG 2.2, 2.2.1).
const LEAVE_AFTER_MS = 8000
const RELOAD_AFTER_MS = 5000
// The pause has a random part, so that pages rejected together do not retry simultaneously.
const POLL_AFTER_MS = 2000
const POLL_SPREAD_MS = 2000
// Longer than the browser's own reconnection, which takes 1 to 4 seconds plus the response time.
const LOST_AFTER_MS = 6000
// After two missed heartbeats the connection is considered dead, even if the browser reports it as open.
const HEARTBEATS_MISSED = 2.5
const APP_OPENS_WITHIN_MS = 2000

// Milliseconds by which the customer's clock is ahead of the service's clock, which decides about the expiry.
const ahead = Date.now() - Number(now)
const back = document.querySelector('.back')
const unpaid = document.querySelector('.unpaid')
const attempt = document.querySelector('.attempt')
const lost = document.querySelector('.lost')
const utr = document.querySelector('.utr')
const hint = document.querySelector('.hint')
const leaving = document.querySelector('.paid .quiet')
const left = document.querySelector('.left')
const sectionOf = (name) => document.querySelector(`section[data-state~="${name}"]`)
const { title } = document
// The common end of every page title: ` · ` and the payee's name.
const ofPayee = title.slice(title.indexOf(' · '))
const isFinal = (section) => 'final' in section.dataset
let shown = state
let over = isFinal(sectionOf(state))
let source
let again
let losing
let dying
let opening
// Query string of the event stream's URL, until a first heartbeat shows that the service received it.
let returned = ''

function show(next) {
  if (next === shown) return
  const section = sectionOf(next)
  if (!section) {
    // The page was sent without the section for this state, so it has to be loaded again.
    setTimeout(() => location.reload(), RELOAD_AFTER_MS)
    return
  }
  const before = sectionOf(shown)
  shown = next
  attempt.hidden = next !== 'attemptFailed'
  showHint('')
  if (section === before) return
  for (const other of document.querySelectorAll('section')) other.hidden = other !== section
  over = isFinal(section)
  if (over) hideLost()
  back.hidden = !over
  unpaid.hidden = over
  const heading = section.querySelector('h2')
  document.title = heading ? heading.textContent + ofPayee : title
  // Focuses the heading, so that screen readers read it and the focus does not stay on a hidden element.
  if (heading) heading.focus()
  if (next === 'paid') leave()
}

// Redirects to the merchant once the page is visible. A key, a touch or a change of focus cancels the redirect.
function leave() {
  if (document.hidden) return document.addEventListener('visibilitychange', leave, { once: true })
  leaving.hidden = false
  const timer = setTimeout(() => location.replace(back.getAttribute('href')), LEAVE_AFTER_MS)
  const stay = () => {
    clearTimeout(timer)
    // The text keeps its space in the layout, because otherwise the pressed element would move.
    leaving.style.visibility = 'hidden'
  }
  for (const event of ['keydown', 'pointerdown']) addEventListener(event, stay)
  // relatedTarget is null when the window itself gets the focus, such as when the customer returns from the wallet
  // app.
  addEventListener('focusin', ({ relatedTarget }) => relatedTarget && stay())
}

for (const copy of document.querySelectorAll('.copy')) {
  // Hides the copy button over plain http, where browsers offer no clipboard.
  copy.hidden = !navigator.clipboard
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(copy.previousElementSibling.textContent)
    copy.textContent = copy.dataset.copied
  })
}

function showUtr(text) {
  utr.textContent = text
  utr.parentElement.hidden = text === ''
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

// Requests a failed QR again, because the service may have been too busy to draw it.
function retryImage({ target: image }) {
  const after = POLL_AFTER_MS + Math.random() * POLL_SPREAD_MS
  if (!over) setTimeout(() => image.setAttribute('src', `${image.src.split('?')[0]}?again=${Date.now()}`), after)
}

for (const image of document.querySelectorAll('.qr')) image.addEventListener('error', retryImage)

function countDown() {
  if (shown !== 'open' && shown !== 'attemptFailed') return
  const seconds = Math.max(0, Math.ceil((Number(expires) + ahead - Date.now()) / 1000))
  if (seconds === 0) {
    // The service decides about the expiry: if it still sends `open`, for example after a change of the customer's
    // clock, the page shows `open` again, without a countdown.
    left.textContent = ''
    return show('timeUp')
  }
  const minutes = Math.floor(seconds / 60)
  const { timeLeft, hoursLeft } = left.dataset
  left.textContent =
    minutes < 60
      ? timeLeft.replace('{time}', `${minutes}:${String(seconds % 60).padStart(2, '0')}`)
      : hoursLeft.replace('{hours}', Math.floor(minutes / 60)).replace('{minutes}', minutes % 60)
  setTimeout(countDown, 1000)
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
  // The UTR and the failure reason arrive before the state that shows them.
  mine.addEventListener('attempt', ({ data }) => {
    attempt.textContent = data
    showHint('')
  })
  mine.addEventListener('utr', ({ data }) => showUtr(data))
  mine.addEventListener('over', () => {
    over = true
    mine.close()
  })
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
  // After 404 and 410 the reloaded page explains why the payment is gone. After other statuses the page does not
  // reload, because a proxy's error page could replace it.
  if (response?.status === 404 || response?.status === 410) return location.reload()
  const next = response?.headers.get('x-payment-state')
  if (next) {
    hideLost()
    showUtr(response.headers.get('x-payment-utr') ?? '')
    show(next)
  }
  if (!over) listen()
}

function showHint(text) {
  clearTimeout(opening)
  hint.textContent = text
  hint.hidden = !text
}

// history.state stores the state in which the customer chose an app, because a phone may discard the page while the
// app is in front.
function press() {
  history.replaceState(shown, '')
  showHint('')
  opening = setTimeout(showHint, APP_OPENS_WITHIN_MS, hint.dataset.nothingOpened)
}

// A customer who returns from an app waits for the payment. `?back` reports each return to the service once.
function comeBack() {
  if (document.hidden || !history.state) return
  returned = '?back'
  // In another state the bank has already reported a result.
  if (history.state === shown) showHint(hint.dataset.waiting)
}

if (!over) {
  countDown()
  comeBack()
  listen()
  for (const link of document.querySelectorAll('.apps a')) link.addEventListener('click', press)
  // An app, or the system's list of apps, takes the focus from the page.
  for (const event of ['blur', 'pagehide', 'visibilitychange']) addEventListener(event, () => clearTimeout(opening))
  // Sends the sandbox form by script, so that the page stays open and gets a simulated payment by events like a real
  // one.
  document.querySelector('.sandbox')?.addEventListener('submit', async (event) => {
    event.preventDefault()
    const body = new URLSearchParams(new FormData(event.target, event.submitter))
    const response = await fetch(event.target.action, { method: 'POST', redirect: 'manual', body })
    if (response.type !== 'opaqueredirect') alert(await response.text())
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
