const { state, expires, now, events } = document.body.dataset
const REDIRECT_AFTER_MS = 1500
const RELOAD_AFTER_MS = 5000

// The service's clock decides, not the customer's.
const ahead = Date.now() - Number(now)
let shown = state

function show(next) {
  if (next === shown) return
  shown = next
  for (const section of document.querySelectorAll('section[data-state]'))
    section.hidden = section.dataset.state !== next
  document.querySelector(`section[data-state="${next}"] h2`)?.focus()
  document.title = document.querySelector(`section[data-state="${next}"]`).dataset.title
  if (next === 'paid') leave()
}

function leave() {
  const address = document.querySelector('section[data-state="paid"] a').getAttribute('href')
  setTimeout(() => location.replace(address), REDIRECT_AFTER_MS)
}

function countDown() {
  const seconds = Math.max(0, Math.ceil((Number(expires) + ahead - Date.now()) / 1000))
  const left = document.querySelector('.left')
  left.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} left to pay`
  if (seconds === 0 && shown === 'open') show('expired')
  else if (shown === 'open') setTimeout(countDown, 1000)
}

function listen() {
  const source = new EventSource(events)
  source.onmessage = ({ data }) => {
    show(data)
    if (data === 'paid') source.close()
  }
  source.addEventListener('over', () => source.close())
  // EventSource comes back by itself from a lost connection, but not from a refusal.
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), RELOAD_AFTER_MS)
  }
}

if (shown === 'open') countDown()
if (shown === 'paid') leave()
else listen()
