// Copy buttons, the language of samples, and the search. Everything else on the page works without JavaScript.
const root = new URL('.', import.meta.url)

// Adds a copy button to each sample, except over plain HTTP, where browsers provide no clipboard.
if (navigator.clipboard) {
  for (const block of document.querySelectorAll('.code')) {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'copy'
    button.textContent = 'Copy'
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(textOf(block.querySelector('code')))
      button.textContent = 'Copied'
      setTimeout(() => {
        button.textContent = 'Copy'
      }, 2_000)
    })
    block.querySelector('.bar').append(button)
  }
}

/** Returns the text to copy: the whole sample, or only the commands in a terminal session. */
function textOf(code) {
  if (!code.classList.contains('language-console')) return code.textContent
  const commands = code.textContent.split('\n').filter((line) => line.startsWith('$ '))
  return commands.map((line) => `${line.slice(2)}\n`).join('')
}

// Stores the chosen tab under the name of the property in which the tabs differ, such as the language, and selects the
// same tab in every group that contains the tab. A browser may forbid the storage.
function stored(name) {
  try {
    return localStorage.getItem(name)
  } catch {}
}

function store(name, label) {
  try {
    localStorage.setItem(name, label)
  } catch {}
}

function select(text) {
  for (const label of document.querySelectorAll('.tabs > label'))
    if (label.textContent === text) label.control.checked = true
}

for (const name of ['Language', 'Variant']) {
  select(stored(name))
  for (const tabs of document.querySelectorAll(`.tabs[aria-label="${name}"]`)) {
    tabs.addEventListener('change', ({ target }) => {
      const label = target.labels[0].textContent
      const { top } = tabs.getBoundingClientRect()
      select(label)
      store(name, label)
      // Scrolls back, because the height of samples above may have changed, which must not move this group on the
      // screen.
      scrollBy(0, tabs.getBoundingClientRect().top - top)
    })
  }
}

// The list of chapters scrolls separately from the page. If the current chapter is out of sight, scroll it to the
// middle of the list.
const current = document.querySelector('.chapters [aria-current]')
if (current) {
  const chapters = current.closest('nav')
  const { offsetTop } = current
  if (offsetTop > chapters.clientHeight - 60) chapters.scrollTop = offsetTop - chapters.clientHeight / 2
}

const form = document.querySelector('.search')
const input = form.querySelector('input')
const list = form.querySelector('.results')
const status = form.querySelector('.status')
form.hidden = false

/** Time after which the search tries again to load its index. */
const REPEAT_AFTER_MS = 5_000

let repeating
let loading
/** Loads the ranking, the library and the search entries at the first use, and builds the index. */
function loadIndex() {
  loading ??= Promise.all([
    import(`${root}search.js`),
    import(`${root}minisearch.js`),
    fetch(`${root}search.json`).then((response) => response.json()),
  ])
    .then(([{ createSearch }, { default: MiniSearch }, entries]) => createSearch(MiniSearch, entries))
    .catch((error) => {
      loading = undefined
      throw error
    })
  return loading
}

async function search() {
  const query = input.value.trim()
  const find = query === '' ? undefined : await loadIndex().catch(() => undefined)
  if (query !== input.value.trim()) return
  clearTimeout(repeating)
  if (query !== '' && find === undefined) {
    list.hidden = true
    status.textContent = 'Search is not available.'
    repeating = setTimeout(search, REPEAT_AFTER_MS)
    return
  }
  const found = find ? find(query) : []
  list.replaceChildren(...found.map(toItem))
  list.hidden = found.length === 0
  status.textContent = query === '' ? '' : `${found.length || 'No'} results`
  if (query !== '' && found.length === 0) {
    const item = document.createElement('li')
    item.append(Object.assign(document.createElement('p'), { textContent: `No results for “${query}”.` }))
    list.replaceChildren(item)
    list.hidden = false
  }
}

function toItem({ url, guide, title, heading }) {
  const item = document.createElement('li')
  const link = Object.assign(document.createElement('a'), { href: new URL(url, root).href })
  link.append(
    heading || title,
    Object.assign(document.createElement('small'), { textContent: heading ? `${guide} › ${title}` : guide }),
  )
  link.addEventListener('click', close)
  item.append(link)
  return item
}

function close() {
  list.hidden = true
}

input.addEventListener('focus', () => void loadIndex().catch(() => {}))
input.addEventListener('input', search)
input.addEventListener('click', search)
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  await search()
  list.querySelector('a')?.click()
})
form.addEventListener('focusout', ({ relatedTarget }) => {
  if (!form.contains(relatedTarget)) close()
})
form.addEventListener('keydown', (event) => {
  const stops = [input, ...list.querySelectorAll('a')]
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (move !== undefined && !list.hidden) {
    event.preventDefault()
    stops[(stops.indexOf(document.activeElement) + move + stops.length) % stops.length].focus()
  } else if (event.key === 'Escape') {
    input.focus()
    close()
  }
})
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return
  // In an input field, such as a field in the API reference, the shortcut key types a character instead of opening the
  // search.
  if (event.composedPath()[0].matches?.('input, textarea, select, [contenteditable]')) return
  event.preventDefault()
  input.focus()
})
