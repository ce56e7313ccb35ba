import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DISPUTE_STATUSES, type DisputeReport, isFinal, stateOf } from '../../src/gateway/disputes/dispute.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { newUtr } from '../support/acquirer.ts'
import { disputeEvents, storedDispute } from '../support/disputes.ts'
import { runs } from '../support/generated.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant, startService, unique } from '../support/service.ts'
import { newWebhook } from '../support/webhooks.ts'

const service = await startService({ asServiceRole: true, limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
const { mid } = await newMerchant(service.db)
await newWebhook(service.db, { mid, url: 'https://shop.example/' }, service.clock.now())
const { now } = service.clock
const disputes = createDisputes(service.pools.reports)

type Status = DisputeReport['status']
type Stated = { status: Status; statedAt: Date | undefined }

const VERDICTS = DISPUTE_STATUSES.filter(isFinal)

/** A valid history: open and under review alternate at increasing times, and at most one verdict is last. */
const history = fc
  .record({
    turns: fc.integer({ min: 1, max: 6 }),
    verdict: fc.option(fc.constantFrom(...VERDICTS)),
    from: fc.constantFrom<Status>('open', 'under review'),
  })
  .map(({ turns, verdict, from }) => {
    const other = from === 'open' ? 'under review' : 'open'
    const statuses = Array.from({ length: turns }, (_, turn) => (turn % 2 ? other : from))
    return verdict === null ? statuses : [...statuses, verdict]
  })

/** All states of the history in any order, each at least once. */
const delivered = (states: readonly Stated[]) =>
  fc
    .array(fc.constantFrom(...states), { maxLength: 6 })
    .chain((repeats) => fc.shuffledSubarray([...states, ...repeats], { minLength: states.length + repeats.length }))

const timed = history.map((statuses) =>
  statuses.map((status, day): Stated => ({ status, statedAt: new Date(now().getTime() - (30 - day) * 86_400_000) })),
)
/** Without times, a history never goes back. */
const untimed = history.map((statuses) => {
  const forward = [...new Set(statuses)].toSorted((a, b) => DISPUTE_STATUSES.indexOf(a) - DISPUTE_STATUSES.indexOf(b))
  return forward.map((status): Stated => ({ status, statedAt: undefined }))
})
const anyHistory = fc
  .oneof(timed, untimed)
  .chain((states) => fc.record({ states: fc.constant(states), order: delivered(states) }))

const record = (report: DisputeReport, source: string) => disputes.record('direct', report, { source, now })

async function newDispute() {
  const orderId = await storePaidOrder(service.db, { mid, utr: newUtr(), paidAt: now() })
  return { id: unique('D'), orderId }
}

it('computes the last state of a valid history from its states in any order and with any repeats', () => {
  fc.assert(
    fc.property(anyHistory, ({ states, order }) => {
      expect(stateOf(order)).toBe(states.at(-1)?.status)
    }),
    { numRuns: runs(20_000, 500) },
  )
})

it('stores the last state of a valid history that is reported in any order, with one event per change', async () => {
  await fc.assert(
    fc.asyncProperty(anyHistory, async ({ states, order }) => {
      const dispute = await newDispute()
      const changes: Status[] = []
      for (const { status, statedAt } of order) {
        await record({ ...dispute, status, statedAt }, 'notification')
        const stored = (await storedDispute(service.db, dispute.id))?.status as Status
        if (stored !== changes.at(-1)) changes.push(stored)
      }
      expect(changes.at(-1)).toBe(states.at(-1)?.status)
      const events = await disputeEvents(service.db, dispute.orderId)
      const wire = changes.map((status) => status.toUpperCase().replace(' ', '_'))
      expect(events.map(({ status }) => status)).toEqual(wire)
      expect(events.map(({ type }) => type)).toEqual(changes.map((_, i) => `dispute.${i === 0 ? 'opened' : 'updated'}`))
    }),
    { numRuns: runs(400, 25) },
  )
})

it('corrects the state by the next status check, whichever notifications were lost', async () => {
  await fc.assert(
    fc.asyncProperty(
      timed.chain((states) => fc.record({ states: fc.constant(states), kept: fc.subarray(states) })),
      fc.boolean(),
      async ({ states, kept }, hasTimes) => {
        const dispute = await newDispute()
        for (const state of [states[0] as Stated, ...kept.filter(({ status }) => !isFinal(status))])
          await record({ ...dispute, ...state }, hasTimes ? 'notification' : 'enquiry')
        const { status, statedAt } = states.at(-1) as Stated
        await record({ ...dispute, status, statedAt: hasTimes ? statedAt : undefined }, 'enquiry')
        expect((await storedDispute(service.db, dispute.id))?.status).toBe(status)
      },
    ),
    { numRuns: runs(400, 25) },
  )
})
