import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { newMerchant } from '../support/service.ts'
import { FILES, USUAL } from './files.ts'

let db: Database
let url: string
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  // The lines are from the last 10 bank days, so all of them are stored.
  vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-11-21T12:00:00+05:30') })
})
afterAll(async () => {
  vi.useRealTimers()
})

async function countStored() {
  const { rows } = await db.query(
    'select (select count(*) from statement_imports) as imports, (select count(*) from statement_lines) as lines',
  )
  return rows[0]
}

describe('statement files', () => {
  it.each(Object.entries(FILES))(
    'statements import stores a file exactly, or rejects the file with the reason: %s',
    async (name, one) => {
      const layout = `f${Object.keys(FILES).indexOf(name)}`
      const columns = (one.columns ?? USUAL).flatMap((column) => ['--column', column])
      const date = ['--date', one.date ?? 'dd/mm/yyyy']
      const added = await runOps(url, [
        ...['settlements', 'layout', 'add', '--name', layout, ...date, ...columns, ...(one.flags ?? [])],
      ])
      expect(added).toMatchObject({ code: 0, stderr: '' })
      const { mid } = await newMerchant(db)
      const args = ['--layout', layout, '--mid', mid, '--from', '2026-11-16', '--to', '2026-11-20', ...(one.args ?? [])]
      const tried = await runOps(url, ['settlements', 'layout', 'try', '-', '--layout', layout, '--json'], one.file)
      const { faults, rows } = JSON.parse(tried.stdout)
      const before = await countStored()
      const { code, stdout, stderr } = await runOps(url, ['statements', 'import', '-', ...args], one.file)
      if ('rejected' in one) {
        const invalid = one.rejected.split(/; (?=line )/).filter((text) => text.startsWith('line '))
        const lines = `invalid line${invalid.length === 1 ? '' : 's'}, nothing was imported`
        const bad = invalid.length > 0 ? `${invalid.length} ${lines}; ` : ''
        expect({ code, stderr }).toEqual({ code: 1, stderr: `ops: ${bad}${one.rejected}\n` })
        expect(faults.slice(1)).toEqual(invalid)
        expect(await countStored()).toEqual(before)
        return
      }
      const [, number, covers, counted] = /^Bank statement (\d+) covers (.*)\.\n(\d+) lines?: .*\n$/.exec(stdout) ?? []
      const { rows: lines } = await db.query(
        `select line::integer, to_char(day, 'DD')::integer as day, amount_paise::integer as paise, array_to_string(refs, ' ') as refs
         from statement_lines where import_id = $1 order by line`,
        [number],
      )
      expect({ code, lines: lines.map((line) => Object.values(line)) }).toEqual({ code: 0, lines: one.read })
      expect(covers).toBe(one.covers)
      const count = one.read.length
      expect({ faults, rows, counted }).toEqual({ faults: [], rows: count, counted: String(count) })
    },
  )
})
