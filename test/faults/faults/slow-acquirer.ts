import { setTimeout as sleep } from 'node:timers/promises'
import { createHttpClient, type HttpResponse } from '../../support/http-client.ts'
import { createRequest } from '../../support/requests.ts'
import { openBank } from '../bank.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import type { Finding } from '../verdict.ts'

const ROUNDS = 7
const ROUND_MS = 2_500
/** Concurrent creates of the merchant who must not be affected. */
const CONCURRENT_CREATES = 8
/** Concurrent creates of the slow bank's merchants, more than the limit. */
const CONCURRENT_WAITING = 80
const SLOW_MS = 3_000
/** Maximum loss of creates of `direct` merchants, by the median of the rounds. */
const LOSS_LIMIT = 0.1

/**
 * A bank responds after 3 s or never while a merchant of `direct` creates orders, alternating with rounds without
 * calls to the bank.
 */
export async function slowAcquirer({ postgres }: Stage): Promise<Finding[]> {
  const { url, db, tenant } = await setScene(postgres, 'slow_acquirer')
  const { bank, merchant: waiting, settings } = await openBank(db)
  const service = await startService(url, { RATE_LIMIT_PER_SECOND: '1000000', ...settings })
  const client = createHttpClient()
  const direct: (number | undefined)[] = []
  const ofBank: (number | undefined)[] = []
  const broken: string[] = []
  const ratios: number[] = []
  await round(false)
  direct.length = 0
  for (let number = 0; number < ROUNDS; number++) {
    bank.faults = [
      { call: 'createDqr', fault: { afterMs: SLOW_MS }, chance: 0.5 },
      { call: 'createDqr', fault: 'no response', chance: 1 },
    ]
    const quiet = await round(false)
    const beside = await round(true)
    ratios.push(beside / quiet)
  }
  const rejected = direct.filter((status) => status !== 200).length
  const median = ratios.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0
  if (rejected > 0) broken.push(`no create of the other merchant is rejected: ${rejected} of ${direct.length} were`)
  if (median < 1 - LOSS_LIMIT)
    broken.push(`creates drop by at most ${LOSS_LIMIT * 100} %: ${median.toFixed(2)} of quiet`)
  if (ofBank.some((status) => status !== 503 && status !== 200)) broken.push('orders of a slow bank get 200 or 503')
  const spread = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(2)).join(' to ')
  const notes = [
    `${direct.length} creates of the other merchant, ${median.toFixed(2)} × quiet (${spread}); ${ofBank.length} of the bank's`,
  ]
  client.close()
  await service.stop()
  await bank.goAway()
  await db.end()
  return [{ fault: 'a bank that responds after 3 s or never', notes, broken }]

  /** Returns the other merchant's creates per millisecond. */
  async function round(isBankChecked: boolean): Promise<number> {
    const until = performance.now() + ROUND_MS
    const bankLoad = isBankChecked ? Array.from({ length: CONCURRENT_WAITING }, () => repeat(until, checkAtBank)) : []
    // Waits until the bank's orders are in progress.
    await sleep(isBankChecked ? 200 : 0)
    const before = direct.length
    const startedAt = performance.now()
    await Promise.all(Array.from({ length: CONCURRENT_CREATES }, () => repeat(until, create)))
    const rate = (direct.length - before) / (performance.now() - startedAt)
    await Promise.all(bankLoad)
    return rate
  }

  async function repeat(until: number, work: () => Promise<unknown>) {
    while (performance.now() < until) await work()
  }

  async function create() {
    direct.push((await client.send(service.url, createRequest(tenant.merchant))).status)
  }

  async function checkAtBank() {
    const response: HttpResponse = await client.send(service.url, createRequest(waiting))
    ofBank.push(response.status)
    // Pauses like a merchant's server after 503.
    if (response.status === 503) await sleep(500)
  }
}
