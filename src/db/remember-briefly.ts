import { LOOK_UP_TIMEOUT } from './outage.ts'

/** How old an answer may be. Contract B5 allows 5 seconds for a revoked key or a cut link to be known everywhere. */
const MEMORY_MS = 1_000
/** Answers that are remembered at once, also that there is nothing; beyond that the oldest are forgotten. */
const MEMORY_ENTRIES = 10_000
/** Longest wait for an answer: a request has its own work to do after it, and 2 s for all of it: see answer-deadline.ts. */
const LOOK_UP_LIMIT_MS = 600

/**
 * `lookUp` with a memory of a second, for what every request asks: one query per key and second, however many requests
 * come. A failed look-up is not remembered.
 */
export function rememberBriefly<T>(lookUp: (...key: string[]) => Promise<T>): (...key: string[]) => Promise<T> {
  const remembered = new Map<string, { until: number; answer: Promise<T> }>()
  return (...key) => {
    const name = key.join(' ')
    // Not the time of day: a clock that is set back would let a revoked key live on.
    const moment = performance.now()
    const known = remembered.get(name)
    if (known && moment < known.until) return known.answer
    const answer = inTime(lookUp(...key))
    remembered.delete(name)
    remembered.set(name, { until: moment + MEMORY_MS, answer })
    answer.catch(() => remembered.delete(name))
    if (remembered.size > MEMORY_ENTRIES) remembered.delete(remembered.keys().next().value as string)
    return answer
  }
}

function inTime<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(LOOK_UP_TIMEOUT)), LOOK_UP_LIMIT_MS)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
