// The ranking of the search, in a file of its own, so that a test can rank the entries without a browser.
const RESULTS = 8
/** Words that occur in every section and do not help the search. */
const STOP_WORDS = new Set('a an and for how i in is my of on or the to what with'.split(' '))
/** Treats plural and singular, and forms such as `verifying` and `verify`, as one term. */
const toTerm = (word) => {
  const term = word.toLowerCase()
  return STOP_WORDS.has(term) ? undefined : term.replace(/(?<=\w{4})(?:ing|ed|s)$/, '')
}

/** Returns a function that finds the best entries for a query, best first. */
export function createSearch(MiniSearch, entries) {
  const index = new MiniSearch({
    idField: 'url',
    fields: ['guide', 'title', 'heading', 'text'],
    storeFields: ['url', 'guide', 'title', 'heading', 'text'],
    processTerm: toTerm,
    searchOptions: {
      boost: { title: 5, heading: 4 },
      prefix: true,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      // Ranks the beginning of a chapter higher, because the beginning introduces the subject of the whole chapter.
      boostDocument: (url) => (url.includes('#') ? 1 : 1.8),
      weights: { prefix: 0.5, fuzzy: 0.2 },
    },
  })
  index.addAll(entries)
  return (query) => resultsOf(index, query).slice(0, RESULTS)
}

/**
 * Returns the sections that contain every word. If few sections contain every word, sections that contain some of the
 * words follow.
 */
function resultsOf(index, query) {
  const withAll = index.search(query, { combineWith: 'AND' })
  if (withAll.length > RESULTS / 2) return withAll
  const urls = new Set(withAll.map(({ url }) => url))
  return [...withAll, ...index.search(query).filter(({ url }) => !urls.has(url))]
}
