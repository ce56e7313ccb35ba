import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ROOT, run } from '../../support/processes.ts'
import type { WorkspaceDatabase } from '../../support/workspace.ts'
import { progress } from '../../support/workspace.ts'
import type { Section } from '../bench.ts'
import { COPY_CLIENT, copyIn } from '../psql.ts'
import { alternate, ratios } from '../statistics.ts'
import { addMerchants, MERCHANTS, merchantId } from '../tables.ts'

const ROUNDS = 5
const LINES = 1_000_000
const QUICK_LINES = 100_000
const COLUMNS = 'mid, amount, utr, bank_reference_number, status, initiation_date, created_at'
const TARGET = 'settlements (mid, amount, utr, bank_reference_number, status, initiated_at, created_at)'

/** settlements import, by the operator's command, beside a bare COPY of the same file. */
export const importFile: Section = async (bench) => {
  const lines = bench.quick ? QUICK_LINES : LINES
  const file = join(bench.directory, 'settlements.csv')
  const ours = await bench.createDatabase('import_ours')
  const copy = await bench.createDatabase('import_copy')
  await Promise.all([
    addMerchants(ours.db),
    addMerchants(copy.db),
    pipeline(Readable.from(csv(lines)), createWriteStream(file)),
  ])

  const store = { ours: () => importByCommand(ours, file), copy: () => copyIn(copy, TARGET, file) }
  const databases = { ours, copy }
  return async () => {
    const series = await alternate(['copy', 'ours'], ROUNDS, async (name, round) => {
      const startedAt = performance.now()
      await store[name]()
      const linesPerSecond = (lines / (performance.now() - startedAt)) * 1000
      progress(`settlements import: round ${round} of ${ROUNDS}, ${name}: ${Math.round(linesPerSecond)} lines/s`)
      await empty(databases[name], lines)
      return linesPerSecond
    })
    const unit = 'lines/s'
    return [
      {
        title: `settlements import of ${lines.toLocaleString('en')} lines`,
        series: [
          { contender: `copy from stdin through ${COPY_CLIENT}`, unit, samples: series.copy },
          { contender: 'ours', unit, samples: series.ours },
        ],
        figures: [
          { what: 'ours / copy from stdin', samples: ratios(series.ours, series.copy), unit: '×', atLeast: 0.3 },
        ],
      },
    ]
  }
}

async function importByCommand({ url }: WorkspaceDatabase, file: string): Promise<void> {
  const env = { PATH: process.env.PATH, NODE_ENV: 'production', DATABASE_URL: url }
  await run(process.execPath, [join(ROOT, 'dist/cli/ops.js'), 'settlements', 'import', file, '--json'], { env })
}

async function empty({ db }: WorkspaceDatabase, expectedRows: number): Promise<void> {
  const { rows } = await db.query<{ count: string }>('select count(*) from settlements')
  if (Number(rows[0]?.count) !== expectedRows)
    throw new Error(`${rows[0]?.count} rows were stored, not ${expectedRows}`)
  await db.query('truncate settlements')
  await db.query('checkpoint')
}

/** What a bank sends: merchants in no order, references that grow with time. */
function* csv(lines: number): Generator<string> {
  const BLOCK_LINES = 1_000
  const firstMoment = Date.UTC(2026, 7, 16)
  yield `${COLUMNS.replaceAll(' ', '')}\n`
  for (let from = 0; from < lines; from += BLOCK_LINES) {
    let block = ''
    for (let i = from; i < Math.min(lines, from + BLOCK_LINES); i++) {
      const mid = merchantId((i * 7_919) % MERCHANTS)
      const moment = new Date(firstMoment + i * 1_000).toISOString()
      block += `${mid},${100 + (i % 100_000)}.50,${523_500_000_000 + i},BRN${i},SUCCESS,${moment},${moment}\n`
    }
    yield block
  }
}
