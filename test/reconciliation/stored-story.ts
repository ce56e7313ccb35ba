import { addDays, type Days } from '../../src/books/ledger/bank-days.ts'
import { groupBy } from '../../src/books/ledger/match-deductions.ts'
import { undoImport } from '../../src/books/settlements/imports.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { importRows, istMoment, type Row, storeReports } from './rows.ts'
import { HOLIDAYS, LATE_HOLIDAYS, type Line, type Story } from './story.ts'

/** Stores the facts day by day as the service and the operator's commands would, and calls `atEnd` at the end of each day. */
export async function storeStories(
  db: Database,
  stories: readonly Story[],
  { from, to }: Days,
  atEnd: (day: string, imported?: { importId: number; rows: Row[] }) => Promise<void>,
): Promise<void> {
  await db.query(
    `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
     select unnest($1::text[]), 'Chai Point', 'chaipoint@examplebank', '5814', 'link', '2025-01-01'`,
    [stories.map(({ mid }) => mid)],
  )
  const holidays = (days: readonly string[], at: Date) =>
    db.query(`insert into bank_holiday_changes select unnest($1::date[]), 1, 'closed', 'Asha', $2`, [days, at])
  await holidays(HOLIDAYS, new Date('2026-01-01'))
  const lines = stories.flatMap((story) => story.lines.map((line) => ({ ...line, mid: story.mid })))
  const undos = new Map<string, number[]>()
  for (let day = from; day <= to; day = addDays(day, 1)) {
    for (const late of LATE_HOLIDAYS) if (late.reportedOn === day) await holidays(late.days, istMoment(day, '08:00:00'))
    for (const importId of undos.get(day) ?? []) {
      const undo = { now: istMoment(day, '10:00:00'), person: 'asha' }
      const undone = await inTransaction(db, (client) => undoImport(client, importId, undo))
      if ('rejected' in undone) throw new Error(`import ${importId} is not undone: ${JSON.stringify(undone)}`)
    }
    for (const story of stories) await storeFacts(db, story, day)
    const failing = lines.filter(({ failedOn }) => failedOn === day).map((line) => ({ ...line, status: 'FAILED' }))
    const files = groupBy(
      [...lines.filter((line) => line.from === day), ...failing.map((line) => ({ ...line, until: '' }))],
      ({ until = '', acquirer }) => [until, acquirer ?? ''].join(' '),
    )
    let imported: { importId: number; rows: Row[] } | undefined
    for (const [name, file] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const [undoneOn = '', account] = name.split(' ')
      const rows = file.map(rowOf)
      const moment = istMoment(day, undoneOn === '' ? '20:00:00' : '20:30:00')
      const importId = await importRows(db, rows, moment, account || undefined)
      if (undoneOn === '') imported = { importId, rows }
      else undos.set(undoneOn, [importId, ...(undos.get(undoneOn) ?? [])])
    }
    await atEnd(day, imported)
  }
  await db.query('vacuum analyze')
}

const rowOf = ({ utr, paymentUtr, repeats, gross, ...line }: Line & { mid: string }): Row => ({
  ...{ ...line, amount: gross - (line.fee ?? 0) - (line.tax ?? 0) },
  ...(repeats ? { utr: paymentUtr as string } : { utr, paymentUtr }),
})

/** Stores the merchant's payments, refunds, exceptions and resolutions that become known on `day`. */
async function storeFacts(db: Database, { mid, ...story }: Story, day: string): Promise<void> {
  const isNew = ({ from }: { from: string }) => from === day
  const payments = story.payments.filter(isNew)
  const received = ({ from, ...one }: (typeof payments)[number]) =>
    from === one.day ? one.at : istMoment(from, '15:00:00')
  const intents: unknown[][] = []
  const rows: unknown[][] = []
  for (const one of payments) {
    const { orderId, amount, madeAt, utr, at, kind } = one
    if (kind !== 'second') {
      intents.push([mid, orderId, Math.floor(amount / 100), amount % 100, madeAt, 'SUCCESS', utr])
    }
    const source = kind === 'late' ? 'day file' : 'notification'
    rows.push([mid, utr, orderId, amount, at, received(one), kind, source, one.acquirer])
  }
  await storeReports(db, { intents, payments: rows, exceptions: [] })
  const insert = (sql: string, all: readonly object[]) =>
    all.length === 0 ? undefined : db.query(sql, [mid, JSON.stringify(all)])
  await insert(
    `insert into payment_exceptions (status, mid, order_id, kind, utr, amount_paise, paid_at, received_at)
     select case kind when 'failure after success' then 'FAIL' else 'SUCCESS' end,
            case kind when 'unknown order' then '' else $1 end, "orderId", kind, utr, amount, at, "receivedAt"
       from json_to_recordset($2) as e (kind text, "orderId" text, utr text, amount bigint, at timestamptz, "receivedAt" timestamptz)`,
    story.exceptions.filter(isNew),
  )
  await insert(
    `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at,
       status, reference, ended_at)
     select $1, "refundId", "refundId", "orderId", r.utr, amount, 'cold', p.acquirer, 'merchant', at, 'SUCCESS', r.reference, at
       from json_to_recordset($2) as r ("refundId" text, "orderId" text, utr text, amount bigint, at timestamptz, reference text)
       join payments p on p.mid = $1 and p.utr = r.utr`,
    story.refunds.filter(isNew),
  )
  for (const { disputeId: id, orderId, utr, amount, acquirer, from, verdict } of story.disputes ?? []) {
    const report = { id, orderId, utr, amount }
    const reporting = { source: 'asha', now: () => istMoment(day, '16:00:00') }
    if (from === day) await createDisputes(db).record(acquirer, { ...report, status: 'open' }, reporting)
    if (verdict?.from === day)
      await createDisputes(db).record(acquirer, { ...report, status: verdict.status }, reporting)
  }
  await insert(
    `insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
     select e.mid, e.exception_id, 'seen to', 'asha', "resolvedAt"
       from json_to_recordset($2) as r (kind text, utr text, "resolvedAt" timestamptz)
       join payment_exceptions e on e.mid in ($1, '') and e.kind = r.kind and e.utr = r.utr
     -- A lost dispute may have resolved it.
     on conflict do nothing`,
    story.exceptions
      .filter(({ resolvedOn }) => resolvedOn === day)
      .map((one) => ({ ...one, resolvedAt: istMoment(day, '19:00:00') })),
  )
}
