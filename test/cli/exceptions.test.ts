import { describe, expect, it } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { opsOn, runOpsOnTerminal } from '../support/ops.ts'
import { CREATE, intentFields, newMerchant, post, startService } from '../support/service.ts'

const service = await startService()

const { ops, json } = opsOn(() => service.databaseUrl, ['payments'])

/** Creates an order that is paid twice, by payments with the UTRs `first` and `second`. */
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
  it('payments resolve stores operator, time and reason, and removes the exception from the list of --open', async () => {
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

  it('payments exceptions prints the next step for each exception until it is resolved', async () => {
    const { mid, id } = await paidTwice()
    const listed = async () => (await ops('exceptions', '--mid', mid)).stdout
    expect(await listed()).toMatch(
      /^id +receivedAt +kind +amount +nextStep .*\n.* ₹200\.00 +The customer paid twice: refund the second payment\. /,
    )
    await json(...resolve(id, REASON))
    expect(await listed()).not.toContain('refund the second payment')
  })

  it.each([
    [
      'unknown order',
      'If the customer paid, find the order by amount and time, then run ops payments confirm. Without an order, refund the payment at the bank.',
    ],
    [
      'amount differs',
      "If the bank received this amount, return it at the bank, then run ops payments resolve --exception ID --reason 'returned at the bank, RRN …'.",
    ],
  ] as const)('payments exceptions prints a next step for "%s" that the operator can carry out', async (kind, step) => {
    const { mid } = await withExceptions([kind, '200', '2026-05-01T06:00:00Z'])
    const [found] = await json('exceptions', '--mid', mid)
    expect((await ops('exceptions', '--mid', mid)).stdout).toContain(` ${step} `)
    await json(...resolve(found.id, 'returned at the bank, RRN 523504870777'))
    expect(await json('exceptions', '--mid', mid, '--open')).toEqual([])
  })

  it.each(['one after the other', 'concurrently'])(
    'payments resolve, run %s by two operators, stores one resolution and shows the resolution to the second operator',
    async (when) => {
      const { id } = await paidTwice()
      const by = (person: string) => ops(...resolve(id, `by ${person}`, '--by', person))
      const runs =
        when === 'concurrently' ? await Promise.all([by('meera'), by('ravi')]) : [await by('meera'), await by('ravi')]
      const [row, ...more] = await resolutions(id)
      expect(more).toEqual([])
      if (when !== 'concurrently') expect(row).toEqual({ reason: 'by meera', resolved_by: 'meera' })
      const losers = runs.filter(({ code }) => code !== 0)
      const stderr = expect.stringMatching(
        `^ops: exception ${id} was already resolved by ${row.resolved_by} at 20[^ ]* [^ ]* IST: ${row.reason}\n$`,
      )
      expect(losers).toEqual([{ code: 1, stdout: '', stderr }])
    },
  )

  it('payments resolve rejects an unknown id, stores nothing and names the command that lists the ids', async () => {
    expect(await ops(...resolve('0123456789ab', 'x'))).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ops: exception 0123456789ab does not exist: see ops payments exceptions\n',
    })
    expect(await resolutions('0123456789ab')).toEqual([])
  })

  it.each([
    [resolve('17', 'x'), '--exception must be the id of an exception, 12 hex digits'],
    [['resolve', '--exception', '0123456789ab'], '--reason is required'],
    [['resolve', '--mid', 'M1', '--reason', 'x'], 'give either --exception or --all'],
    [resolve('0123456789ab', 'x', '--all'), 'give either --exception or --all'],
    [resolve('0123456789ab', 'x', '--mid', 'M1'), '--mid cannot be combined with --exception'],
    [['exceptions', '--from', '2026-04-02', '--to', '2026-04-01'], '--from must not be after --to'],
    [['exceptions', '--from', '2026-04-02', '--month', '2026-04'], 'give either --month, or --from and --to'],
    [['exceptions', '--month', '2026-13'], '--month must be a month such as 2026-11'],
    [
      ['exceptions', '--kind', 'double'],
      '--kind must be one of: unknown order, amount differs, UTR of another order, UTR of another merchant, ' +
        'double payment, late payment, ' +
        'failure after success, unreadable, refund unsure, refund without an end, refund failed after success, ' +
        'refunded above what was paid, refund differs, unknown dispute, dispute differs, refund of a disputed payment',
    ],
    [resolve('0123456789ab', 'x', '--by', ''), '--by must be text of 1 to 64 characters, without control characters'],
  ])('ops payments rejects the arguments %j with usage and exit code 2', async (args, message) => {
    const { code, stderr } = await ops(...args)
    expect([code, stderr.split('\n')[0]]).toEqual([2, `ops: ${message}`])
  })
})

/** Creates a merchant with exceptions of the given kinds, amounts and times of receipt. */
async function withExceptions(...rows: [kind: string, amount: string, receivedAt: string][]) {
  const { mid } = await newMerchant(service.db)
  const ids: string[] = []
  for (const [kind, amount, receivedAt] of rows) {
    const { rows: stored } = await service.db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
       values ($1, $2, $3, $2, $4, 'SUCCESS', $5) returning exception_id as id`,
      [mid, newUtr(), kind, Math.round(Number(amount) * 100), receivedAt],
    )
    ids.push(stored[0].id)
  }
  return { mid, ids }
}

const idsOf = (exceptions: { id: string }[]) => exceptions.map(({ id }) => id)

describe('payments exceptions', () => {
  it('payments exceptions filters by kind, merchant and IST days, including the first and last day', async () => {
    const { mid, ids } = await withExceptions(
      ['late payment', '1', '2026-05-01T18:29:59.999Z'],
      ['late payment', '2', '2026-05-01T18:30:00Z'],
      ['double payment', '3', '2026-05-02T06:00:00Z'],
      ['late payment', '4', '2026-05-03T18:29:59.999Z'],
      ['late payment', '5', '2026-05-03T18:30:00Z'],
    )
    const [, second = '', third, fourth, fifth] = ids
    const list = async (...args: string[]) => idsOf(await json('exceptions', '--mid', mid, ...args))
    expect(await list()).toEqual(ids)
    const days = ['--from', '2026-05-02', '--to', '03-05-2026']
    expect(await list(...days)).toEqual([second, third, fourth])
    expect(await list(...days, '--kind', 'late payment')).toEqual([second, fourth])
    expect(await list('--from', '2026-05-04')).toEqual([fifth])
    expect(await list('--month', '2026-05')).toEqual(ids)
    expect(await list('--month', '2026-04')).toEqual([])
    await json(...resolve(second, REASON))
    expect(await list(...days, '--kind', 'late payment', '--open')).toEqual([fourth])
    const { stdout } = await ops('exceptions', '--mid', mid, '--from', '2026-05-04')
    expect(stdout).toMatch(/ 2026-05-04 00:00:00 IST .* ₹5\.00 /)
  })
})

describe('payments resolve --all', () => {
  const MANY: [string, string, string][] = [
    ['amount differs', '999999999999.99', '2026-06-01T06:00:00Z'],
    ['amount differs', '0.02', '2026-06-01T06:00:00Z'],
    ['late payment', '7', '2026-06-01T06:00:00Z'],
  ]
  const all = (mid: string, ...more: string[]) => ['resolve', '--all', '--mid', mid, '--reason', REASON, ...more]

  const onTerminal = (response: string, args: string[]) =>
    runOpsOnTerminal(service.databaseUrl, ['payments', ...args], response)

  it('payments resolve --all resolves the filtered exceptions with one reason, and stores one audit row with the number of exceptions', async () => {
    const { mid, ids } = await withExceptions(...MANY)
    const [first = '', second = '', late] = ids
    const done = await json(...all(mid, '--kind', 'amount differs', '--yes', '--by', 'meera'))
    expect(done).toEqual({ resolved: 2, amount: '1000000000000.01' })
    for (const id of [first, second]) expect(await resolutions(id)).toEqual([{ reason: REASON, resolved_by: 'meera' }])
    expect(idsOf(await json('exceptions', '--open', '--mid', mid))).toEqual([late])
    const { rows } = await service.db.query(
      `select person, outcome, detail from audit_commands join audit_outcomes using (audit_id) where arguments ->> 'mid' = $1`,
      [mid],
    )
    expect(rows).toEqual([{ person: 'meera', outcome: 'done', detail: done }])
    expect(await json(...all(mid, '--kind', 'amount differs'))).toEqual({ resolved: 0, amount: '0.00' })
  })

  it.each(['y\n', ' YES\n'])(
    'payments resolve --all requests confirmation with count and rupees, and resolves the exceptions after the input %j',
    async (response) => {
      const { mid } = await withExceptions(...MANY)
      expect(await onTerminal(response, all(mid))).toEqual({
        code: 0,
        stdout: 'Resolved 3 exceptions, ₹10,00,00,00,00,007.01.\n',
        stderr: `resolve 3 exceptions, ₹10,00,00,00,00,007.01, with the reason "${REASON}"? (y/N) `,
      })
      expect(await json('exceptions', '--open', '--mid', mid)).toEqual([])
    },
  )

  it.each(['n\n', '\n', 'yesterday\n', ''])(
    'payments resolve --all changes nothing if the operator enters %j',
    async (response) => {
      const { mid, ids } = await withExceptions(...MANY)
      const { code, stderr } = await onTerminal(response, all(mid))
      expect([code, stderr]).toEqual([1, expect.stringMatching(/ops: cancelled: nothing was changed\n$/)])
      expect(idsOf(await json('exceptions', '--open', '--mid', mid))).toEqual(ids)
    },
  )

  it('payments resolve --all requires --yes without a terminal', async () => {
    const { mid, ids } = await withExceptions(['late payment', '1234567', '2026-06-01T06:00:00Z'])
    const { code, stderr } = await ops(...all(mid))
    const fault =
      'would resolve 1 exception, ₹12,34,567.00, with the reason "refunded at the bank, RRN 523504870777": add --yes to confirm, because standard input is not a terminal'
    expect([code, stderr]).toEqual([1, `ops: ${fault}\n`])
    expect(idsOf(await json('exceptions', '--open', '--mid', mid))).toEqual(ids)
  })

  it('payments resolve --all, run by two operators concurrently, resolves each exception once and reports each operator’s own count', async () => {
    const { mid } = await withExceptions(...MANY)
    const by = (person: string) => json(...all(mid, '--yes', '--by', person))
    const [meera, ravi] = await Promise.all([by('meera'), by('ravi')])
    const ended: { resolvedBy: string }[] = await json('exceptions', '--mid', mid)
    const countOf = (person: string) => ended.filter(({ resolvedBy }) => resolvedBy === person).length
    expect([meera.resolved, ravi.resolved]).toEqual([countOf('meera'), countOf('ravi')])
    expect(meera.resolved + ravi.resolved).toBe(3)
  })
})
