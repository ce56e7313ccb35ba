// npm run bench:pages: what open pay pages cost the service while their customers wait, in processor time of one core, on
// this machine. Exits 1 above the limit. Everything stays on 127.0.0.1 and ends within a minute or two.
import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createMerchants } from '../../src/merchants/merchants.ts'
import { buildIntent } from '../../src/payments/intent.ts'
import { createIntents } from '../../src/payments/intents.ts'
import { cpuSeconds } from '../support/processes.ts'
import { newPayment } from '../support/requests.ts'
import { BUILT_SERVER, startServerProcess } from '../support/server-process.ts'
import { until } from '../support/wait.ts'
import { build, createDatabase, openWorkspace, progress } from '../support/workspace.ts'

const PAGES = 1_000
const LIMIT_PERCENT = 5
/** After the rush of 1,000 connections, before what is measured. */
const SETTLE_MS = 5_000
/** Longer than the interval of heartbeats, so that these are part of it. */
const MEASURE_MS = 30_000

type Page = { text: string; paidAt: number | undefined }

await build()
const { postgres } = await openWorkspace()
const { url: databaseUrl, db } = await createDatabase(postgres, 'open_pages')
const orderIds = await createOrders()
const service = await startServerProcess(databaseUrl, {}, { built: BUILT_SERVER, logFile: '/dev/null' })

progress(`opening ${PAGES} pages`)
const pages = orderIds.map((orderId) => openPage(`${service.url}/pay/${orderId}/events`))
await until('every page was answered', () => pages.every(({ text }) => text.includes('data: open')))
await sleep(SETTLE_MS)

progress(`measuring for ${MEASURE_MS / 1_000} s`)
const [cpuBefore, before] = [cpuSeconds(service.pid), performance.now()]
await sleep(MEASURE_MS)
const percent = ((cpuSeconds(service.pid) - cpuBefore) / ((performance.now() - before) / 1_000)) * 100

// All at once is the most that one look-up may find.
await db.query("update payment_intents set status = 'SUCCESS', utr = order_id")
const paidAt = performance.now()
await until('every page was told', () => pages.every((page) => page.paidAt !== undefined))
const lastToldMs = Math.max(...pages.map((page) => page.paidAt ?? Infinity)) - paidAt
await service.stop()

if (cpuBefore === 0) throw new Error('This system does not tell the processor time of a process: Linux is needed')
console.log(`${PAGES} open pages: ${percent.toFixed(2)} % of a core (limit ${LIMIT_PERCENT} %)`)
console.log(`All paid in one moment: the last page was told after ${Math.round(lastToldMs)} ms`)
process.exit(percent < LIMIT_PERCENT ? 0 : 1)

async function createOrders(): Promise<string[]> {
  const now = new Date()
  const fields = {
    mid: 'BENCH',
    name: 'Chai Point',
    vpa: 'chaipoint@examplebank',
    mcc: '5814',
    dynamicQr: 'link' as const,
  }
  const merchant = await createMerchants(db).add(fields, now)
  if (merchant === undefined) throw new Error('the merchant exists in a new database')
  const intents = createIntents(db, () => undefined)
  const made = Array.from({ length: PAGES }, () => buildIntent(newPayment(merchant.mid), merchant, now, 15))
  for (const intent of made) await intents.insert(intent)
  return made.map(({ orderId }) => orderId)
}

function openPage(url: string): Page {
  const page: Page = { text: '', paidAt: undefined }
  get(url, { agent: false }, (answer) => {
    answer.setEncoding('utf8').on('data', (text: string) => {
      page.text += text
      if (page.text.includes('data: paid')) page.paidAt ??= performance.now()
    })
  })
  return page
}
