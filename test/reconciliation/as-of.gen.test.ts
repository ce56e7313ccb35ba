import { expect, it } from 'vitest'
import { undoImport } from '../../src/books/settlements/imports.ts'
import { inTransaction } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { isGenerated } from '../support/generated.ts'
import { findingsOf } from './findings.ts'
import { importRows, istMoment, makeMonths, type Row, resolveSome, storeMonths } from './months.ts'

it('a report as of a past day equals the report that was made on that day', {
  timeout: 240_000,
}, async () => {
  const { db } = await createTestDatabase()
  const { ledgers, facts } = makeMonths(800, isGenerated() ? Date.now() % 100_000 : 7)
  const months = { ledgers, facts: new Map([...facts].filter(([day]) => isGenerated() || day < '2026-02-06')) }
  const pause = isGenerated() ? 4 : 8
  const mids = [undefined, 'M2_OWN', 'M6_NEIGHBOUR']
  const read = async (days: { from: string; to: string }, now: Date) => {
    const reports: string[] = []
    for (const only of mids) {
      for (const finding of await findingsOf(db, { ...days, mid: only, now })) {
        reports.push(JSON.stringify(finding, (_, value) => (typeof value === 'bigint' ? String(value) : value), 0))
      }
    }
    return reports
  }
  const made: { days: { from: string; to: string }; now: Date; report: string[] }[] = []
  let waiting: Row[] = []
  let before: { importId: number; rows: Row[] } | undefined
  let number = 0
  await storeMonths(db, months, async (day, imported) => {
    number += 1
    const moment = (time: string) => istMoment(day, time)
    if (waiting.length > 0) await importRows(db, waiting.splice(0), moment('21:00:00'))
    if (number % 5 === 0 && before !== undefined) {
      // The file of the day before was imported by mistake: it comes again on the next day.
      const { importId, rows } = before
      const undone = await inTransaction(db, (client) =>
        undoImport(client, importId, { now: moment('21:30:00'), person: 'asha' }),
      )
      if (!('refused' in undone)) waiting = [...rows]
    }
    before = imported === undefined ? undefined : { importId: imported, rows: months.facts.get(day)?.rows ?? [] }
    const days = { from: `${day.slice(0, 7)}-01`, to: day }
    if (number % 3 === 0) {
      await resolveSome(db, { ...days, now: moment('22:00:00') }, number)
    }
    if (number % pause !== 0) return
    const now = moment('23:59:59.999')
    const asked = number % (2 * pause) === 0 ? days : { from: '2026-01-01', to: '2026-01-31' }
    made.push({ days: asked, now, report: await read(asked, now) })
  })
  expect(made.length).toBeGreaterThan(3)
  for (const { days, now, report } of made) expect(await read(days, now), now.toISOString()).toEqual(report)
})
