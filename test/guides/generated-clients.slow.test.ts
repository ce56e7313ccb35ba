import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { reportPayment } from '../support/orders.ts'
import { ROOT, run, TYPESCRIPT } from '../support/processes.ts'
import { intentFields, newMerchant, ORDER, post, startService } from '../support/service.ts'
import { blockWith, filledIn } from './guides.ts'

/** For a machine on which much else runs: the compiler alone takes 5 s. */
const TIMEOUT_MS = 240_000

const TSCONFIG = {
  compilerOptions: {
    ...{ strict: true, noEmit: true, noUncheckedIndexedAccess: true },
    ...{ target: 'es2023', module: 'esnext', moduleResolution: 'bundler', types: ['node'], skipLibCheck: true },
  },
}

/** A program that compiles only if the generated types distinguish the events. `types` imports them. */
const eventHandler = (types: string) => `${types}
export const utr = (event: Succeeded): string => event.data.UTR
// @ts-expect-error: only a successful payment always has a UTR.
export const none = (event: Failed): string => event.data.UTR
`

const GENERATORS = [
  {
    name: 'openapi-typescript',
    sample: '// client.ts, with openapi-fetch',
    generate: 'npx openapi-typescript',
    types: `import type { components } from './openapi'
type Succeeded = components['schemas']['PaymentSucceeded']
type Failed = components['schemas']['PaymentAttemptFailed']`,
    header: 'amount,UTR,orderId,order_id,merchant_id,status,refunded,created_at,paid_at,instrument\n',
  },
  {
    name: '@hey-api/openapi-ts',
    sample: '// client.ts, with @hey-api/openapi-ts',
    generate: 'npx openapi-ts',
    types: `import type { PaymentAttemptFailed as Failed, PaymentSucceeded as Succeeded } from './api'`,
    header: '',
  },
]

const service = await startService()
const address = await service.app.listen({ host: '127.0.0.1', port: 0 })

it.each(GENERATORS)(
  'a client that $name generates compiles, and creates, checks and lists payments, as the sample in the guide shows',
  { timeout: TIMEOUT_MS },
  async ({ sample, generate, types, header }) => {
    const { mid, key } = await newMerchant(service.db)
    const { orderId } = (await post(service.app, ORDER, intentFields(mid, { order_id: 'PAID-1' }), key)).body.data
    await reportPayment(service, orderId)

    const folder = mkdtempSync(join(tmpdir(), 'upi-payments-clients-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    const files = {
      'package.json': '{ "type": "module" }',
      'tsconfig.json': JSON.stringify(TSCONFIG),
      'client.ts': filledIn(blockWith('merchant', 'ts', sample), address),
      'events.ts': eventHandler(types),
    }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    const credentials = { MID: mid, PUBLIC_KEY: key.publicKey, SECRET_KEY: key.secretKey }
    const env = { ...process.env, ...credentials, BASE_URL: address, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' }
    const inFolder = (command: string, ...args: string[]) => run(command, args, { cwd: folder, env })

    await inFolder('sh', '-c', blockWith('merchant', 'sh', 'openapi-merchant.json'))
    await inFolder('sh', '-c', blockWith('merchant', 'sh', generate))
    await inFolder(process.execPath, 'node_modules/typescript/bin/tsc', '--project', '.')
    const output = await inFolder(process.execPath, ...TYPESCRIPT, 'client.ts')

    expect(output).toMatch(new RegExp(`^[0-9a-f]{32}\nPENDING\nPAID-1 200\\.00\n${header}$`))
  },
)
