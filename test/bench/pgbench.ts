import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findSystemProgram, run } from '../support/processes.ts'
import { connectionEnvironment } from './bench.ts'
import { CONNECTIONS } from './load.ts'

/** The service's insert of one intent, with a new order id for each. */
const insertIntent = (mid: string) => `
insert into payment_intents
  (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email,
   customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at)
select '${mid}', id, id, 20000, 'https://shop.example.in/thanks?order=1001', 'Order 1001', 'Asha Rao', 'asha@example.in',
       '0123456789', 'chaipoint@examplebank', 'Chai Point', '5814', now(), now() + interval '15 minutes'
  from (select replace(uuidv7()::text, '-', '') as id) ids
    on conflict do nothing;
`

/** Prepares pgbench to measure the database alone, in inserts per second; undefined if pgbench is not installed. */
export function preparePgbench(directory: string, databaseUrl: string, mid: string) {
  const program = findSystemProgram('pgbench')
  if (program === undefined) return undefined
  const script = join(directory, 'insert-intent.sql')
  writeFileSync(script, insertIntent(mid).replaceAll('\n', ' '))
  return async ({ seconds }: { seconds: number }): Promise<number> => {
    const args = ['-n', '-M', 'prepared', '-c', String(CONNECTIONS), '-j', '2', '-T', String(seconds), '-f', script]
    const output = await run(program, args, { env: connectionEnvironment(databaseUrl) })
    return Number(/tps = ([\d.]+) \(without/.exec(output)?.[1] ?? Number.NaN)
  }
}
