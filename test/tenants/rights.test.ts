import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { ensureDemo } from '../../src/dev/demo.ts'
import { createAccessKeys } from '../../src/gateway/tenants/access-keys.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { RIGHTS, type Right } from '../../src/platform/rights.ts'
import { stopAtEnd } from '../support/at-end.ts'
import { POSTS } from '../support/openapi.ts'
import {
  CREATE,
  errorResponse,
  intentFields,
  type Key,
  newKey,
  newMerchant,
  newPartner,
  post,
  REFUND,
  STATUS,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'

const lacks = (right: string) =>
  errorResponse(403, `This key lacks the right '${right}'. Ask the operator for a key with this right.`)
const FORBIDDEN = errorResponse(
  403,
  'This key has no access to this mid or pid, or the merchant is disabled. Check the mid or pid and the key.',
)

let service: TestService
/** Another instance of the service on the same database. */
let other: TestService
let demo: Awaited<ReturnType<typeof ensureDemo>>
beforeAll(async () => {
  service = await startService()
  other = await startService({ replicated: { url: service.databaseUrl } })
  const directory = mkdtempSync(join(tmpdir(), 'upi-payments-demo-'))
  stopAtEnd(() => rmSync(directory, { recursive: true }))
  demo = await ensureDemo({ databaseUrl: service.databaseUrl, directory, now: service.clock.now() })
  expect((await post(service.app, REFUND, REFUND_FIELDS, demo.merchantKey)).status).toBe(200)
})

const REFUND_FIELDS = OPERATIONS.v1.find(({ path }) => path === REFUND)?.body?.example ?? {}

/** Returns the example of the operation, a request of the demo's merchant or partner, for an order of its own. */
async function fieldsOf({ name, body }: (typeof OPERATIONS.v1)[number]): Promise<Record<string, string>> {
  const fields = { ...body?.example }
  if (name.startsWith('create')) return { ...fields, order_id: unique('O') }
  if (name !== 'cancelPayment') return fields
  const order_id = unique('O')
  await post(service.app, CREATE, intentFields(demo.mid, { order_id }), demo.merchantKey)
  return { ...fields, order_id }
}

const MATRIX = OPERATIONS.v1.flatMap((operation) =>
  RIGHTS.map((right) => [operation.path, right, operation.access === right ? 200 : 403, operation] as const),
)

describe('rights of a merchant’s key', () => {
  it.each(MATRIX.filter(([, , , { tag }]) => tag === 'Merchant'))(
    '%s with a key that has only the right %s returns %i',
    async (path, right, status, operation) => {
      const key = await newKey(service.db, { mid: demo.mid }, [right])
      const response = await post(service.app, path, await fieldsOf(operation), key)
      expect(response.status).toBe(status)
      if (status === 403) expect(response.body).toEqual(lacks(operation.access))
    },
  )

  it.each(OPERATIONS.v1.filter(({ tag }) => tag === 'Merchant'))(
    '$path returns 403 for a key that has all rights but $access',
    async ({ path, access, body }) => {
      const rights = RIGHTS.filter((right) => right !== access)
      const key = await newKey(service.db, { mid: demo.mid }, rights)
      const { status, body: rejected } = await post(service.app, path, body?.example ?? {}, key)
      expect([status, rejected]).toEqual([403, lacks(access)])
    },
  )

  it('returns the 403 of a missing right for a replay by Idempotency-Key too', async () => {
    const { mid, key } = await newMerchant(service.db)
    const [fields, headers] = [intentFields(mid, { order_id: 'once' }), { 'idempotency-key': 'once' }]
    expect((await post(service.app, CREATE, fields, key, headers)).status).toBe(200)
    const checking = await newKey(service.db, { mid }, ['status'])
    const { status, body } = await post(service.app, CREATE, fields, checking, headers)
    expect([status, body]).toEqual([403, lacks('create')])
  })

  it('checks the fields first, then ownership, then the right', async () => {
    const { mid } = await newMerchant(service.db)
    const stranger = await newMerchant(service.db)
    const listing = await newKey(service.db, { mid }, ['list'])
    const create = (fields: Record<string, string>) => post(service.app, CREATE, fields, listing)
    expect((await create(intentFields(stranger.mid, { amount: '0' }))).status).toBe(400)
    expect((await create(intentFields(stranger.mid))).body).toEqual(FORBIDDEN)
    expect((await create(intentFields(mid))).body).toEqual(lacks('create'))
  })
})

describe('rights of a partner’s key', () => {
  it.each(MATRIX.filter(([, right]) => right === 'list'))(
    '%s with a partner’s key, which has only the right %s, is allowed if a partner’s list',
    async (path, _right, _status, { tag, body }) => {
      const { status, body: response } = await post(service.app, path, body?.example ?? {}, demo.partnerKey)
      if (tag === 'Partner') expect(status).toBe(200)
      else expect([status, response]).toEqual([403, FORBIDDEN])
    },
  )

  it.each([...RIGHTS.filter((right) => right !== 'list').map((right) => [right]), ['list', 'status'], []])(
    'the database rejects a partner’s key with the rights %s %s',
    async (...rights) => {
      const { pid } = await newPartner(service.db)
      await expect(newKey(service.db, { pid }, rights as Right[])).rejects.toThrow('access_keys_rights_check')
    },
  )

  it('the database rejects a merchant’s key without a right or with an unknown right', async () => {
    const { mid } = await newMerchant(service.db)
    for (const rights of [[], ['read' as Right]]) {
      await expect(newKey(service.db, { mid }, rights)).rejects.toThrow('access_keys_rights_check')
    }
  })
})

describe('rights in the OpenAPI document', () => {
  it.each(OPERATIONS.v1)('$path requires the role $access', ({ path, access }) => {
    expect(POSTS[path]).toMatchObject({
      security: [{ basic: [access] }],
      description: expect.stringContaining(`Requires a key with the right \`${access}\`.`),
      responses: {
        403: { content: { 'application/json': { examples: { [lacks(access).msg]: { value: lacks(access) } } } } },
      },
    })
  })
})

describe('expiry and revocation on every instance', () => {
  const statuses = (mid: string, key: Key) =>
    Promise.all([service, other].map(async ({ app }) => (await post(app, STATUS, { mid, order_id: '-' }, key)).status))
  const setClocks = (moment: string) => [service, other].map(({ clock }) => clock.set(moment))
  const pass = (seconds: number) => [service, other].map(({ clock }) => clock.advance(seconds))

  it('every instance accepts a key until the end of its last IST day and returns 401 within 5 seconds after that', async () => {
    const { mid } = await newMerchant(service.db)
    setClocks('2026-03-31T18:29:59.999Z')
    const key = await newKey(service.db, { mid }, RIGHTS, '2026-03-31')
    expect(await statuses(mid, key)).toEqual([404, 404])
    pass(5)
    expect(await statuses(mid, key)).toEqual([401, 401])
    const wrong = await post(service.app, STATUS, { mid, order_id: '-' }, { ...key, publicKey: 'pk_unknown' })
    expect((await post(service.app, STATUS, { mid, order_id: '-' }, key)).body).toEqual(wrong.body)
  })

  it('every instance returns 401 within 5 seconds after a key is revoked', async () => {
    const { mid, key } = await newMerchant(service.db)
    expect(await statuses(mid, key)).toEqual([404, 404])
    await createAccessKeys(service.db).revoke(key.publicKey, new Date())
    pass(5)
    expect(await statuses(mid, key)).toEqual([401, 401])
  })
})
