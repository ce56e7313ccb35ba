import type { AcquirerSettings } from '../../src/gateway/acquirers/accounts.ts'
import { createAccounts, createAcquirers } from '../../src/gateway/acquirers/acquirers.ts'
import { LIMITS } from '../../src/limits.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createOutboundClient } from '../../src/platform/outbound/http-client.ts'
import type { TestService } from './service.ts'
import { allow } from './webhooks.ts'

/** Creates the clients of an instance that reads disputes. */
export function createClients({ clock }: Pick<TestService, 'clock'>, settings: Partial<AcquirerSettings>) {
  const limits = { ...LIMITS.outbound, acquirerMs: 30_000 }
  const http = createOutboundClient({ allowedNetworks: allow(), limits, now: clock.now })
  const log = { warn: () => undefined, error: () => undefined } as never
  const options = { log, onCall: () => undefined, limits: LIMITS.acquirers, elapsedMs: clock.elapsedMs }
  return createAcquirers(createAccounts({ direct: [], ...settings }), http, options)
}

/** Returns the stored facts of a dispute; undefined if it is not stored. */
export async function storedDispute(db: Database, disputeId: string) {
  const { rows } = await db.query<{
    mid: string
    utr: string
    status: string
    amount: number | null
    respondBy: Date | null
    openedAt: Date
    checkAt: Date | null
  }>(
    `select mid, utr, status, amount_paise as amount, respond_by as "respondBy", opened_at as "openedAt",
            check_at as "checkAt"
       from disputes
      where dispute_id = $1`,
    [disputeId],
  )
  return rows[0]
}

/** Returns the stored states of a dispute, in the order of their storage. */
export async function storedStates(db: Database, disputeId: string): Promise<string[]> {
  const { rows } = await db.query<{ status: string }>(
    'select status from dispute_states where dispute_id = $1 order by recorded_at, stated_at',
    [disputeId],
  )
  return rows.map(({ status }) => status)
}

/** Returns the dispute events of an order, in the order of their sequence numbers. */
export async function disputeEvents(db: Database, orderId: string) {
  const { rows } = await db.query<{ type: string; sequence: number; data: string }>(
    `select type, sequence, data from webhook_deliveries
      where order_id = $1 and type like 'dispute.%'
      order by sequence`,
    [orderId],
  )
  return rows.map(({ type, sequence, data }) => ({ type, sequence, ...JSON.parse(data) }))
}

/** Returns the exceptions of a kind about an order, and whether they are resolved. */
export async function exceptionsOf(db: Database, orderId: string, kind: string) {
  const { rows } = await db.query<{
    mid: string
    amount: number
    note: string
    account: string | null
    ourRefundId: string
    isOpen: boolean
  }>(
    `select e.mid, amount_paise as amount, note, acquirer_account as account, our_refund_id as "ourRefundId",
            r.mid is null as "isOpen"
       from payment_exceptions e
       left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
      where e.order_id = $1 and e.kind = $2
      order by e.received_at, amount_paise, our_refund_id`,
    [orderId, kind],
  )
  return rows
}
