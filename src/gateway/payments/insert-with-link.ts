import { setTimeout as sleep } from 'node:timers/promises'
import { AcquirerError, createUnavailable, Failure } from '../../errors.ts'
import { isCertainlyNotStored } from '../../platform/db/outage.ts'
import type { Linker } from '../acquirers/client.ts'
import type { Merchant } from '../tenants/merchants.ts'
import type { Intent, PaymentLink } from './intent.ts'
import type { InsertOutcome, Intents } from './intents.ts'

export type Linking = {
  intents: Pick<Intents, 'insert' | 'findEarlier' | 'isStored'>
  /**
   * `requestMs` is the longest time for the acquirers to create a link, `firstLinkMs` the longest time for the first of
   * two acquirers, and `lookUpPauseMs` the pause between two look-ups of the intent.
   */
  limits: { acquirers: { requestMs: number; firstLinkMs: number; lookUpPauseMs: number } }
  /** Called for each link that a fallback acquirer created, with the kind of the first account. */
  metrics: { createdByFallback: (firstKind: Linker['firstKind']) => void }
}

/**
 * Requests a link from an acquirer, then stores the intent with link and payee. A repeat requests no link. Throws 503
 * and stores nothing if no acquirer creates a link. Closes a link that was never shown if another request with the same
 * order_id was faster, if the intent was certainly not stored, or if the acquirer's response did not arrive or was
 * invalid. Looks the intent up if the response to its commit was lost.
 */
export async function insertWithLink(
  intent: Intent,
  { vpa, payees }: Merchant,
  linkers: readonly Linker[],
  { intents, limits, metrics }: Linking,
): Promise<InsertOutcome> {
  const until = AbortSignal.timeout(limits.acquirers.requestMs)
  const earlier = await intents.findEarlier(intent)
  if (earlier) return earlier
  const { paymentLink, payeeVpa, client, firstKind } = await createLink(
    intent,
    payees.length > 0 ? payees : [vpa],
    linkers,
    { until, firstLinkMs: limits.acquirers.firstLinkMs },
  )
  const close = () => closeUnseen(client, paymentLink)
  const linked = { ...intent, payee: { ...intent.payee, vpa: payeeVpa }, paymentLink }
  const stored = await intents.insert(linked).catch(async (error): Promise<InsertOutcome> => {
    // A Failure is thrown while the intent waits for its batch, so it was not sent to the database.
    if (error instanceof Failure || isCertainlyNotStored(error)) close()
    else if (await isFound(intents, linked, limits.acquirers.lookUpPauseMs, until)) return { intent: linked }
    // The link stays open if the look-up finds nothing, because the commit may still be in progress.
    throw error
  })
  const isOurs = 'intent' in stored && stored.intent.orderId === intent.orderId
  if (!isOurs) close()
  else if (paymentLink.isByFallback) metrics.createdByFallback(firstKind)
  return stored
}

/** Looks an intent up, and repeats this every `pauseMs` while the database is unavailable. */
async function isFound(
  intents: Linking['intents'],
  intent: Intent,
  pauseMs: number,
  until: AbortSignal,
): Promise<boolean> {
  while (!until.aborted) {
    const found = await intents.isStored(intent).catch(() => undefined)
    if (found !== undefined) return found
    await sleep(pauseMs)
  }
  return false
}

/**
 * Requests a link from each of `linkers` in turn. Tries the fallback acquirer only if the first acquirer certainly has
 * no open link for the intent, so that no customer can be shown two links.
 */
async function createLink(
  intent: Intent,
  payees: readonly string[],
  linkers: readonly Linker[],
  { until, firstLinkMs }: { until: AbortSignal; firstLinkMs: number },
) {
  for (const [index, { client, merchantId, isFallback, firstKind }] of linkers.entries()) {
    const isLast = index === linkers.length - 1
    const signal = isLast ? until : AbortSignal.any([until, AbortSignal.timeout(firstLinkMs)])
    try {
      const { paymentLink, payeeVpa } = await client.createLink(intent, { id: merchantId, payees }, signal)
      return { paymentLink: { ...paymentLink, isByFallback: isFallback }, payeeVpa, client, firstKind }
    } catch (error) {
      if (!(error instanceof AcquirerError)) throw error
      if (isLast && error.unsureLink) closeUnseen(client, error.unsureLink)
      if (isLast || !(await hasNoLink(error, client, until))) {
        const failed = linkers.slice(0, index + 1)
        throw Object.assign(error, { accountKind: failed.some(({ kind }) => kind === 'default') ? 'default' : 'own' })
      }
    }
  }
  throw createUnavailable()
}

/**
 * Closes a link that was never shown. The response does not wait for the closing. A failed closing is never retried,
 * because a link that stays open expires by itself.
 */
function closeUnseen(client: Linker['client'], link: PaymentLink) {
  client.closeLink(link).catch(() => undefined)
}

/** Whether a failed call has certainly left no open link. Closes a link that the call may have created. */
async function hasNoLink({ isUndone, unsureLink }: AcquirerError, client: Linker['client'], until: AbortSignal) {
  if (isUndone || unsureLink === undefined) return isUndone
  return (await client.closeLink(unsureLink, until).catch(() => 'unknown')) === 'closed'
}
