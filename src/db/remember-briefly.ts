import type { Limits } from '../limits.ts'
import { LOOK_UP_TIMEOUT } from './outage.ts'

/**
 * Returns `lookUp` with a short memory, because every request asks: one query per key and second, however many requests
 * come. A failed look-up is not remembered.
 */
export function rememberBriefly<T>(
  lookUp: (...key: string[]) => Promise<T>,
  limits: Pick<Limits['lookUps'], 'rememberedMs' | 'remembered' | 'ms'>,
): (...key: string[]) => Promise<T> {
  const remembered = new Map<string, { until: number; answer: Promise<T> }>()
  return (...key) => {
    const name = key.join(' ')
    // performance.now(), not the time of day: if that were set back, a revoked key would stay valid.
    const moment = performance.now()
    const known = remembered.get(name)
    if (known && moment < known.until) return known.answer
    const answer = inTime(lookUp(...key), limits.ms)
    remembered.delete(name)
    remembered.set(name, { until: moment + limits.rememberedMs, answer })
    answer.catch(() => remembered.delete(name))
    if (remembered.size > limits.remembered) remembered.delete(remembered.keys().next().value as string)
    return answer
  }
}

function inTime<T>(answer: Promise<T>, limitMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(LOOK_UP_TIMEOUT)), limitMs)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
