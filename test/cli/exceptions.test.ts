import { beforeAll, describe, expect, it } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { opsOn } from '../support/ops.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})

const { ops, json } = opsOn(() => service.databaseUrl, ['payments'])

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

const resolve = (exception: string, reason: string, ...more: string[]) => [
  ...['resolve', '--exception', exception, '--reason', reason, ...more],
]

const REASON = 'refunded at the bank, RRN 523504870777'

describe('payments resolve', () => {
  it('resolves an exception with who, when and why; it stays in the list, but no longer as open', async () => {
    const { mid, orderId, second, id } = await paidTwice()
    expect(id).toMatch(/^[0-9a-f]{12}$/)
    const done = await json(...resolve(id.toUpperCase(), REASON, '--by', 'meera'))
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

  it.each(['one after the other', 'at once'])(
    'by two people %s stores one row, and tells the second who did it and how',
    async (when) => {
      const { id } = await paidTwice()
      const by = (person: string) => ops(...resolve(id, `by ${person}`, '--by', person))
      const runs =
        when === 'at once' ? await Promise.all([by('meera'), by('ravi')]) : [await by('meera'), await by('ravi')]
      const [row, ...more] = await resolutions(id)
      expect(more).toEqual([])
      if (when !== 'at once') expect(row).toEqual({ reason: 'by meera', resolved_by: 'meera' })
      const losers = runs.filter(({ code }) => code !== 0)
      const stderr = expect.stringMatching(
        `^ops: ${id} was resolved by ${row.resolved_by} at 20[^ ]* [^ ]* IST: ${row.reason}\n$`,
      )
      expect(losers).toEqual([{ code: 1, stdout: '', stderr }])
    },
  )

  it('refuses an unknown id, stores nothing and says where the ids are', async () => {
    expect(await ops(...resolve('0123456789ab', 'x'))).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ops: there is no exception 0123456789ab: see ops payments exceptions\n',
    })
    expect(await resolutions('0123456789ab')).toEqual([])
  })

  it.each([
    [resolve('17', 'x'), '--exception must be the id of an exception, 12 hex digits'],
    [['resolve', '--exception', '0123456789ab'], '--reason is required'],
    [resolve('0123456789ab', 'x', '--by', ''), '--by must be text of 1 to 64 characters, without control characters'],
  ])('refuses %j with usage, exit 2', async (args, message) => {
    const { code, stderr } = await ops(...args)
    expect([code, stderr.split('\n')[0]]).toEqual([2, `ops: ${message}`])
  })
})
