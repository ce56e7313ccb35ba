import { beforeAll, describe, expect, it } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { runOps } from '../support/ops.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})

const ops = (...args: string[]) => runOps(service.databaseUrl, ['payments', ...args])

async function json(...args: string[]) {
  const { code, stdout, stderr } = await ops(...args, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** An order that was paid twice; `first` and `second` are the UTRs. */
async function paidTwice() {
  const { mid, key } = await newMerchant(service.db)
  const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
  const [first, second] = [newUtr(), newUtr()]
  for (const UTR of [first, second]) expect((await notify(service, notification(orderId, { UTR }))).status).toBe(200)
  const exceptions: { id: string; orderId: string }[] = await json('exceptions', '--open')
  const { id } = exceptions.find((exception) => exception.orderId === orderId) as { id: string }
  return { mid, orderId, first, second, id }
}

const resolutions = async (id: string) =>
  (await service.db.query('select reason, resolved_by from payment_resolutions where exception_id = $1', [id])).rows

const REASON = 'refunded at the bank, RRN 523504870777'

describe('payments resolve', () => {
  it('ends an exception, with who, when and why; it stays in the list and leaves the open ones', async () => {
    const { mid, orderId, second, id } = await paidTwice()
    expect(id).toMatch(/^[0-9a-f]{12}$/)
    const done = await json('resolve', '--exception', id, '--reason', REASON, '--by', 'meera')
    expect(done).toEqual({
      ...{ id, mid, orderId, kind: 'double payment', resolution: REASON, resolvedBy: 'meera' },
      resolvedAt: expect.stringMatching(/^20/),
    })
    const inList = { id, utr: second, kind: 'double payment', resolution: REASON, resolvedBy: 'meera' }
    expect(await json('exceptions')).toContainEqual(expect.objectContaining({ ...inList, resolvedAt: done.resolvedAt }))
    expect(await json('exceptions', '--open')).not.toContainEqual(expect.objectContaining({ id }))
    const { exceptions } = await json('show', '--order-id', orderId)
    expect(exceptions).toEqual([expect.objectContaining(inList)])
    expect((await ops('show', '--order-id', orderId)).stdout).toMatch(`exception ${id} resolved: ${REASON}`)
  })

  it('takes the id in capitals, and by default the login name', async () => {
    const { id } = await paidTwice()
    const { code } = await ops('resolve', '--exception', id.toUpperCase(), '--reason', 'refunded')
    expect([code, await resolutions(id)]).toEqual([0, [{ reason: 'refunded', resolved_by: expect.any(String) }]])
  })

  it('twice is one row, and the second is told by whom and how it was resolved', async () => {
    const { id } = await paidTwice()
    await json('resolve', '--exception', id, '--reason', REASON, '--by', 'meera')
    const { code, stdout, stderr } = await ops(
      'resolve',
      '--exception',
      id,
      '--reason',
      'something else',
      '--by',
      'ravi',
    )
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(new RegExp(`^ops: ${id} was resolved by meera at 20[^ ]*Z: ${REASON}\n$`))
    expect(await resolutions(id)).toEqual([{ reason: REASON, resolved_by: 'meera' }])
  })

  it('by two at once is one row, and the loser is told', async () => {
    const { id } = await paidTwice()
    const runs = await Promise.all(
      ['meera', 'ravi'].map((by) => ops('resolve', '--exception', id, '--reason', `by ${by}`, '--by', by)),
    )
    expect(runs.map(({ code }) => code).sort()).toEqual([0, 1])
    const [row, ...more] = await resolutions(id)
    expect(more).toEqual([])
    const loser = runs.find(({ code }) => code === 1)
    expect(loser?.stderr).toMatch(new RegExp(`^ops: ${id} was resolved by ${row.resolved_by} at .*: ${row.reason}\n$`))
  })

  it('of an unknown id stores nothing and says where the ids are', async () => {
    expect(await ops('resolve', '--exception', '0123456789ab', '--reason', 'x')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ops: there is no exception 0123456789ab: see ops payments exceptions\n',
    })
    expect(await resolutions('0123456789ab')).toEqual([])
  })

  it('can be changed and deleted by nobody, the owner of the tables included', async () => {
    const { id } = await paidTwice()
    await json('resolve', '--exception', id, '--reason', REASON)
    for (const statement of [
      `update payment_resolutions set reason = ''`,
      'delete from payment_resolutions',
      'truncate payment_resolutions',
    ]) {
      await expect(service.db.query(statement)).rejects.toThrow('payment_resolutions is append-only')
    }
  })

  it.each([
    [['--exception', '17', '--reason', 'x'], '--exception must be the id of an exception, 12 hex digits'],
    [['--exception', '0123456789ab'], '--reason is required'],
    [
      ['--exception', '0123456789ab', '--reason', 'x', '--by', ''],
      '--by must be text of 1 to 64 characters, without control characters',
    ],
  ])('is usage, exit 2, for %j', async (args, message) => {
    const { code, stderr } = await ops('resolve', ...args)
    expect([code, stderr.split('\n')[0]]).toEqual([2, `ops: ${message}`])
  })
})

describe('the id of an exception', () => {
  it('is the same for the same fact, and another for each other fact of the order', async () => {
    const { orderId, second, id } = await paidTwice()
    await notify(service, notification(orderId, { UTR: second }))
    await notify(service, notification(orderId, { UTR: newUtr() }))
    await notify(service, notification(orderId, { UTR: second, amount: 1 }))
    const { exceptions } = await json('show', '--order-id', orderId)
    const ids = exceptions.map((exception: { id: string }) => exception.id)
    expect(ids).toContain(id)
    expect([ids.length, new Set(ids).size]).toEqual([3, 3])
  })
})
