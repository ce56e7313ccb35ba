const { state, expires, now, events } = document.body.dataset
const REDIRECT_AFTER_MS = 1500
const RETRY_AFTER_MS = 5000

// The service's clock decides, not the customer's.
const ahead = Date.now() - Number(now)
const back = document.querySelector('.back')
let shown = state
let over = false
let source

function show(next) {
  if (next === shown) return
  const section = document.querySelector(`section[data-state="${next}"]`)
  if (!section) {
    // Only the service can draw what this page was made without.
    setTimeout(() => location.reload(), RETRY_AFTER_MS)
    return
  }
  shown = next
  for (const other of document.querySelectorAll('section')) other.hidden = other !== section
  back.hidden = next === 'open'
  document.title = section.dataset.title
  // Says it to a screen reader, and leads the keyboard from what is no longer there to what is.
  const heading = section.querySelector('h2')
  if (heading) heading.focus()
  if (next === 'paid') leave()
}

function leave() {
  setTimeout(() => location.replace(back.getAttribute('href')), REDIRECT_AFTER_MS)
}

function countDown() {
  if (shown !== 'open') return
  const seconds = Math.max(0, Math.ceil((Number(expires) + ahead - Date.now()) / 1000))
  if (seconds === 0) return show('expired')
  const minutes = Math.floor(seconds / 60)
  const time =
    minutes < 60
      ? `${minutes}:${String(seconds % 60).padStart(2, '0')}`
      : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  document.querySelector('.left').textContent = `${time} left to pay`
  setTimeout(countDown, 1000)
}

function listen() {
  if (source) source.close()
  const mine = new EventSource(events)
  source = mine
  mine.onmessage = ({ data }) => show(data)
  mine.addEventListener('over', () => {
    over = true
    mine.close()
  })
  // EventSource comes back by itself from a lost connection, but not from a refusal.
  mine.onerror = () => {
    if (mine.readyState === EventSource.CLOSED) setTimeout(recover, RETRY_AFTER_MS)
  }
}

async function recover() {
  const { status } = await fetch(location.href, { method: 'HEAD' }).catch(() => ({}))
  // Loading again shows why it is gone for good; while a proxy is without us, it would replace this page by an error.
  if (status === 404 || status === 410) location.reload()
  else listen()
}

if (shown === 'paid') leave()
else {
  countDown()
  listen()
  // A phone lets the connection die while its owner is in the wallet app; who comes back wants to know at once.
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && !over) listen()
  })
}
