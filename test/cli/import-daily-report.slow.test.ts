import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { openPool } from '../support/postgres-server.ts'
import { runToEnd, TYPESCRIPT } from '../support/processes.ts'
import { newMerchant } from '../support/service.ts'

/** Includes about 50 MB of the process itself. */
const HEAP_MB = 96
/** As objects, these lines would occupy more than 100 MB. */
const LINES = 200_000

it('payments import reads a large daily transaction report in less memory than the report’s lines would occupy', {
  timeout: 240_000,
}, async () => {
  const { url } = await createTestDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'upi-payments-day-'))
  // Without the service’s query time-out, which the setup of this many rows would exceed.
  const db = openPool(url)
  const { mid } = await newMerchant(db)
  await db.query(
    `insert into payment_intents
       (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email, customer_mobile,
        payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
     select $1, id, id, 20000, 'https://shop.example.in', 'Order', '', '', '',
            'chaipoint@examplebank', 'Chai Point', '5814', now(), now(), 'SUCCESS', 'LARGE' || i
       from generate_series(1, $2::integer) i, lateral (select lpad(to_hex(i), 32, '0') as id) ids`,
    [mid, LINES],
  )
  await db.end()
  const path = join(folder, 'large.csv')
  let csv = 'order_id,status,utr,amount,paid_at\n'
  for (let i = 1; i <= LINES; i++) {
    csv += `${i.toString(16).padStart(32, '0')},SUCCESS,LARGE${i},200.00,2026-03-31 23:55:00\n`
  }
  writeFileSync(path, csv)
  const args = [
    `--max-old-space-size=${HEAP_MB}`,
    ...TYPESCRIPT,
    'src/operator/terminal/ops.ts',
    'payments',
    'import',
    path,
  ]
  const { code, stdout } = await runToEnd(process.execPath, args, { env: { ...process.env, DATABASE_URL: url } })
  expect({ code, stdout }).toEqual({ code: 0, stdout: `0 payments recorded, ${LINES} unchanged; exceptions: none.\n` })
  rmSync(folder, { recursive: true })
})
