import { addDays } from '../../src/books/ledger/bank-days.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { toDecimalText as rupees, toPaise } from '../../src/platform/money.ts'
import { type ReconEvent, reconEvent } from '../support/cashfree-recon.ts'
import { runOps } from '../support/ops.ts'
import { untilBlocked } from '../support/wait.ts'
import type { Banks, Movement } from './banks.ts'
import type { KnownOrder, Merchants } from './merchants.ts'
import { ACCOUNTS, type Account, DAY_MS, type Form } from './plan.ts'
import { BEGIN, type World } from './world.ts'

/*
 * Operators who follow the guide, a function per chapter. They know the bank's files, the bank's dashboard and what the service
 * prints, and nothing else of the world.
 */

const LAYOUT = ['Date', 'Reference', 'Withdrawal', 'Deposit', 'Balance'] as const

export type Operators = Awaited<ReturnType<typeof createOperators>>

// biome-ignore lint/suspicious/noExplicitAny: the documents of commands
export type Document = any

/** The documents of a closed month, which never change again. */
export type Printed = { month: string; figures: Document; journal: string; asOf: Record<string, string> }

type Scene = { url: string; db: Database; world: World; banks: Banks; merchants: Merchants; forms: readonly Form[] }

export async function createOperators({ url, db, world, banks, merchants, forms }: Scene) {
  const closes: Printed[] = []
  const statements = new Map(
    merchants.all.map(({ mid }) => [mid, { from: dayOf(0), balance: 1_000_000, lines: [] as Line[] }]),
  )
  const endedDirectly = new Set<string>()
  let reportedUntil = ''

  await ops('statements', 'layout', 'add', '--name', 'bank', '--date', 'yyyy-mm-dd', ...columns())
  return {
    ...{ closes, ops, json, morning, evening, week, dispute, resolveDifferences, close },
    reportedUntil: () => reportedUntil,
  }

  /** Runs a command, which must succeed. */
  async function ops(...args: string[]): Promise<string> {
    return run(args, '')
  }

  async function run(args: string[], input: string, settings: Record<string, string> = {}): Promise<string> {
    const { code, stdout, stderr } = await attempt(args, input, settings)
    if (code !== 0) throw new Error(`ops ${args.join(' ')} failed: ${stderr}${stdout}\n${input}`)
    return stdout
  }

  /** Runs a command, which may be rejected. */
  async function attempt(args: string[], input = '', settings: Record<string, string> = {}) {
    const outcome = await runOps(url, args, input, settings)
    world.count(
      `ops ${args
        .filter((one) => /^[a-z]/.test(one))
        .slice(0, 2)
        .join(' ')}`,
    )
    const { stdout, stderr } = outcome
    if (/canary/i.test(stdout + stderr)) throw new Error(`ops ${args.join(' ')} prints customer data`)
    return outcome
  }

  async function json(...args: string[]): Promise<Document> {
    return JSON.parse(await ops(...args, '--json'))
  }

  /** Every morning: the bank's report, its files, exceptions and refunds. */
  async function morning(): Promise<void> {
    await importReports(['direct'], addDays(world.today(), -1))
    await payOut(world.today())
    await handleExceptions()
    await endDirectRefunds()
    world.work(1, 60, 600)
  }

  /** Imports the reports of the payments from `from` until yesterday: of the bank every day, of the acquirers less often. */
  async function importReports(accounts: readonly Account[], from: string): Promise<void> {
    for (const account of accounts) {
      const isReported = ({ day }: Movement) => day >= from && day < world.today()
      const paid = banks.movements.filter((one) => one.kind === 'payment' && one.account === account && isReported(one))
      if (paid.length === 0) continue
      const rows = paid.map(({ orderId, utr, bankReference = utr, id, isTyped, paise, paidAt }) => {
        const names = isTyped ? 'UPI' : orderId
        return [names, 'SUCCESS', bankReference, rupees(paise), paidAt, account === 'direct' ? '' : id].join()
      })
      const header = 'order_id,status,utr,amount,paid_at,acquirer_payment_id'
      await run(['payments', 'import', '-', '--acquirer', account], [header, ...rows, ''].join('\n'))
    }
    if (accounts.length > 1) reportedUntil = world.today()
  }

  /** Once a week and before a close: the acquirers' reports and the bank statements. */
  async function week(): Promise<void> {
    await importReports(ACCOUNTS, addDays(world.today(), -9))
    await importStatements()
    world.work(1, 60)
  }

  /** Imports the settlement files of a day. One of them is sometimes the wrong file, whose import is undone. */
  async function payOut(day: string): Promise<void> {
    const pulled: ReconEvent[] = []
    for (const payout of banks.payOut(day)) {
      const { mid, account, items, reference } = payout
      const form = forms[merchants.all.findIndex((one) => one.mid === mid)] as Form
      const rows = rowsOf(payout, form)
      const paise = rows.reduce((sum, row) => sum + row.amount, 0)
      statements.get(mid)?.lines.push({ day, reference, paise })
      world.count(`payouts ${form}`)
      world.write(`${account} pays out ${paise} to ${mid}, ${items.length} items, ${reference}`)
      if (account === 'cashfree' && form === 'pulled') {
        pulled.push(...items.map((item) => eventOf(item, reference, day)))
        continue
      }
      const file = (of: Row[]) => [SETTLEMENT_HEADER, ...of.map((row) => lineOf(row, payout, day)), ''].join('\n')
      const args = ['settlements', 'import', '-', '--acquirer', account, '--json']
      if (Number(reference.slice(-3)) % 13 === 0) {
        const wrong = JSON.parse(
          await run(args, file(rows.map((row) => ({ ...row, utr: `W${row.utr}`, amount: row.amount + 700 })))),
        )
        world.count('undone imports')
        await ops('settlements', 'undo', '--import', String(wrong.import))
      }
      await run(args, file(rows))
    }
    if (pulled.length === 0) return
    banks.serveRecon(pulled)
    await run(['settlements', 'pull', '--acquirer', 'cashfree', '--from', day, '--to', day], '', banks.environment)
  }

  /** Imports each merchant's bank statement until yesterday. */
  async function importStatements(): Promise<void> {
    const until = addDays(world.today(), -1)
    for (const [mid, statement] of statements) {
      const noise = { day: until, reference: 'RENT', paise: -100 }
      const lines = [...statement.lines.filter(({ day }) => day <= until), noise]
      if (statement.from > until) continue
      let balance = statement.balance
      const rows = lines.map(({ day, reference, paise }) => {
        balance += paise
        return [day, reference, ...(paise < 0 ? [rupees(-paise), ''] : ['', rupees(paise)]), rupees(balance)].join()
      })
      const period = ['--from', statement.from, '--to', until]
      const balances = [`--opening=${rupees(statement.balance)}`, `--closing=${rupees(balance)}`]
      const args = ['statements', 'import', '-', '--layout', 'bank', '--mid', mid, ...period, ...balances]
      await run(args, [LAYOUT.join(), ...rows, ''].join('\n'))
      Object.assign(statement, {
        from: addDays(until, 1),
        balance,
        lines: statement.lines.filter(({ day }) => day > until),
      })
    }
  }

  /** Takes the next step of each open exception. */
  async function handleExceptions(): Promise<void> {
    const exceptions: Document = await json('payments', 'exceptions', '--open')
    const refunds: Document = await json('refunds', 'list', '--open')
    // An exception stays open until its refund succeeds.
    const isRefunded = ({ orderId }: Document) => refunds.some((one: Document) => one.orderId === orderId)
    const ofRefund = ({ kind }: Document) => kind === 'refund unsure' || kind === 'refund without an end'
    for (const one of exceptions) {
      if (ofRefund(one)) await askAboutRefund(one)
      else if (!isRefunded(one)) await handle(one)
    }
  }

  async function handle({ id, kind, orderId, utr }: Document): Promise<void> {
    // An operator still looks for the order of this payment.
    if (banks.movements.some((one) => one.unconfirmed && one.utr === utr)) return
    world.count(`exception ${kind}`)
    world.write(`exception ${kind} of ${orderId}`)
    const order = merchants.orders.find((one) => one.orderId === orderId)
    const resolve = (reason: string) => ops('payments', 'resolve', '--exception', id, '--reason', reason)
    switch (kind) {
      case 'double payment':
        return refundOrWait(id, orderId)
      case 'late payment':
        if (!order?.plan.isLateKept && order?.refunds.length === 0) return refundOrWait(id, orderId)
        return void (await resolve('the merchant has shipped'))
      case 'unreadable': {
        if (orderId !== '' && orderId !== null) await ops('payments', 'enquire', '--order-id', orderId)
        const exceptions: Document = await json('payments', 'exceptions', '--open')
        return exceptions.some((one: Document) => one.id === id) ? void (await resolve('not paid')) : undefined
      }
      default:
        return void (await resolve('seen to at the bank'))
    }
  }

  /** Refunds the payment of an exception, unless its dispute is open. */
  async function refundOrWait(exception: string, orderId: string): Promise<void> {
    const { code, stderr } = await attempt(['refunds', 'create', '--exception', exception])
    if (code === 0) return
    if (stderr.includes('a dispute of the payment is open')) return world.write(`${exception} waits for its dispute`)
    if (!banks.movements.some((one) => one.kind === 'dispute' && one.orderId === orderId)) throw new Error(stderr)
    const reason = ['--reason', 'the bank has returned the money after the dispute']
    await ops('payments', 'resolve', '--exception', exception, ...reason)
  }

  /** Looks up a refund with an unknown outcome in the acquirer's dashboard, and records what it shows. */
  async function askAboutRefund({ kind, refundId, orderId }: Document): Promise<void> {
    const account = merchants.orders.find((one) => one.orderId === orderId)?.account as Account
    const shown = banks.refundsOf(account).find(({ ourRefundId }) => ourRefundId === refundId)
    world.count(`unsure refunds ${shown?.status ?? 'unknown at the acquirer'}`)
    world.write(`exception ${kind} of refund ${refundId}: ${shown?.status ?? 'unknown at the acquirer'}`)
    const refund = ['--refund', refundId]
    const fail = ['refunds', 'fail', ...refund, '--reason']
    if (shown === undefined && kind === 'refund unsure') await ops('refunds', 'retry', ...refund)
    else if (shown === undefined) await ops(...fail, 'the acquirer does not have it')
    else if (shown.status === 'success') await ops('refunds', 'done', ...refund, '--reference', shown.reference)
    else if (shown.status === 'failed') await ops(...fail, 'the bank rejected it')
  }

  /** Sends the refunds of payments to the merchants' own UPI addresses, and records the result. */
  async function endDirectRefunds(): Promise<void> {
    const refunds: Document = await json('refunds', 'list', '--open', '--acquirer', 'direct')
    for (const refund of refunds) {
      const { refundId } = refund
      const reference = banks.newReference()
      if (endedDirectly.has(refundId)) throw new Error(`the refund ${refundId} is open again`)
      endedDirectly.add(refundId)
      const isDone = await endDirectRefund(refundId, reference)
      world.count(`direct refunds ${isDone ? 'done' : 'rejected'}`)
      if (isDone) {
        await moveDirectly(refund, world.today(), 1)
        if (Number(reference.slice(-2)) % 7 === 0)
          world.plan(world.now() + 2 * DAY_MS, 'returned', () => returnRefund(refund))
      }
    }
  }

  /** Records that the bank carried out a refund or rejected it. Two operators may disagree, and only one may succeed. */
  async function endDirectRefund(refundId: string, reference: string): Promise<boolean> {
    const done = ['refunds', 'done', '--refund', refundId, '--reference', reference]
    const fail = ['refunds', 'fail', '--refund', refundId, '--reason', 'the account is closed']
    const number = Number(reference.slice(-2))
    if (number % 4 !== 0) {
      await ops(...(number % 9 === 0 ? fail : done))
      return number % 9 !== 0
    }
    const outcomes = await Promise.all([attempt(done), attempt(fail)])
    world.count('contested direct refunds')
    if (outcomes.filter(({ code }) => code === 0).length !== 1)
      throw new Error(`two operators ended the refund ${refundId}: ${JSON.stringify(outcomes)}`)
    return outcomes[0]?.code === 0
  }

  /** Every evening: payments by typed address whose orders an operator has found. `isEnd`: the others, too. */
  async function evening(isEnd: boolean): Promise<void> {
    const found = (one: Movement) =>
      one.unconfirmed === 'same day' || (one.unconfirmed === 'next day' && one.day < world.today())
    for (const one of banks.movements) if (one.unconfirmed && (isEnd || found(one))) await confirm(one)
  }

  async function confirm(payment: Movement): Promise<void> {
    const { orderId, utr, paise, paidAt } = payment
    const names = ['--order-id', orderId, '--utr', utr, '--amount', rupees(paise), '--paid-at', paidAt]
    await ops('payments', 'confirm', ...names)
    delete payment.unconfirmed
    world.write(`${utr} is confirmed for ${orderId}`)
    world.work(1, 60)
  }

  /** The customer's bank returns a refund, and the operator records it. */
  async function returnRefund(refund: Document): Promise<void> {
    const reason = ['--reason', 'the account is closed']
    await ops('refunds', 'returned', '--refund', refund.refundId, '--reference', banks.newReference(), ...reason)
    world.count('direct refunds returned')
    world.work(1, 60)
    await moveDirectly(refund, world.today(), -1)
  }

  /** The bank writes that a customer disputes a payment, and later what it has decided. */
  async function dispute(order: KnownOrder): Promise<void> {
    const { orderId, plan, mid } = order
    const payment = banks.movements.find((one) => one.kind === 'payment' && one.orderId === orderId)
    const isRefunded = banks.movements.some((one) => one.kind === 'refund' && one.utr === payment?.utr)
    // The bank names a payment by the reference that the service has.
    if (!payment || payment.bankReference || payment.unconfirmed || isRefunded || !plan.dispute) return
    const id = `D${plan.number}`
    const names = ['--dispute', id, '--utr', payment.utr, '--amount', rupees(payment.paise)]
    const { code, stderr } = await attempt(['disputes', 'add', '--order-id', orderId as string, ...names])
    // The weekly report names the payment.
    if (stderr.includes('the order has no such payment'))
      return world.plan(world.now() + 7 * DAY_MS, 'dispute', () => dispute(order))
    if (code !== 0) throw new Error(stderr)
    world.count('disputes')
    world.write(`${id}: order ${plan.number} is disputed`)
    world.work(1, 60)
    const { settledOn: _, ...of } = payment
    const moved = { ...of, id, isLate: false }
    banks.move({ ...moved, kind: 'dispute', paise: -payment.paise, day: world.today() })
    world.plan(world.now() + plan.dispute.verdictAfterDays * DAY_MS, 'verdict', async () => {
      const { verdict } = plan.dispute as NonNullable<typeof plan.dispute>
      await ops('disputes', 'update', '--mid', mid, '--dispute', id, '--status', verdict)
      world.write(`${id}: ${verdict}`)
      world.work(1, 60)
      if (verdict === 'won')
        banks.move({ ...moved, kind: 'dispute reversal', paise: payment.paise, day: world.today() })
    })
  }

  async function moveDirectly({ refundId, amount }: Document, day: string, sign: 1 | -1) {
    const { rows } = await db.query('select mid, utr from refunds where our_refund_id = $1', [refundId])
    const [{ mid, utr }] = rows as [{ mid: string; utr: string }]
    const payment = banks.movements.find((one) => one.kind === 'payment' && one.mid === mid && one.utr === utr)
    if (payment === undefined) throw new Error(`the refund ${refundId} is of a payment ${utr} that nobody made`)
    const paise = -sign * Math.round(Number(String(amount).replaceAll(',', '')) * 100)
    const { settledOn: _, ...names } = payment
    banks.move({ ...names, kind: 'refund', id: refundId, paise, day, isLate: false })
  }

  /**
   * Resolves what no later file will close: totals of several days that cancel out, and refunds that the merchant returned to the
   * acquirer itself. Returns how the open amount of an account differs from what the acquirer owes.
   */
  async function resolveDifferences(): Promise<string[]> {
    const { differences }: Document = await json('reconcile', 'differences')
    const open = new Map<string, number>()
    const add = (key: string, paise: number) => open.set(key, (open.get(key) ?? 0) + paise)
    for (const { mid, owed } of differences) add(mid, toPaise(owed))
    for (const { mid, kind, settledOn, paise } of banks.movements)
      if (settledOn === undefined && (kind === 'payment' || kind === 'refund')) add(mid, -paise)
    const broken = [...open].flatMap(([mid, paise]) =>
      paise === 0
        ? []
        : [
            `the open discrepancies of ${mid} are ${paise} more than the acquirers owe: ${JSON.stringify([differences.filter((one: Document) => one.mid === mid), banks.movements.filter((one) => one.mid === mid && one.settledOn === undefined)])}`,
          ],
    )
    for (const difference of differences) {
      const { id, kind, utr } = difference
      const isPaid = banks.movements.some((one) => one.utr === utr || one.bankReference === utr)
      if (isPaid && kind === 'unknown payment') broken.push(`the payment is known of ${JSON.stringify(difference)}`)
      world.count(`resolved ${kind}`)
      await ops('reconcile', 'resolve', '--difference', id, '--reason', 'in the total of another day, or returned')
    }
    return broken
  }

  /** Closes a month, and prints what must stay the same. */
  async function close(month: string): Promise<void> {
    await week()
    const figures = await closeBeside(month)
    const journal = await ops('reconcile', 'journal', '--month', month, '--csv')
    closes.push({ month, figures, journal, asOf: await asOf(addDays(world.today(), -1)) })
    world.count('closes')
    world.write(`${month} is closed`)
  }

  /** Closes a month while another operator's commands, which began before, wait to store payments. */
  async function closeBeside(month: string): Promise<Document> {
    const beside = banks.movements.filter((one) => one.unconfirmed)
    const client = await db.connect()
    try {
      await client.query('begin; lock table payments in share mode')
      const confirmed = Promise.all(beside.map(confirm))
      await untilBlocked(db, beside.length)
      let isOver = false
      const closing = json('reconcile', 'close', '--month', month, '--yes').finally(() => {
        isOver = true
      })
      if (beside.length > 0) await untilBlocked(db, beside.length + 1, () => isOver)
      await client.query('rollback')
      await confirmed
      world.count(`closes beside ${beside.length} payments`)
      return await closing
    } finally {
      client.release()
    }
  }

  /** Prints the reports as known at the end of an earlier day, which never change again. */
  async function asOf(day: string): Promise<Record<string, string>> {
    const from = addDays(day, -20)
    const days = ['--from', from, '--to', day, '--as-of', day]
    const commands = [
      ['reconcile', ...days, '--csv'],
      ['reconcile', 'payouts', ...days, '--csv'],
      ['reconcile', 'differences', '--as-of', day, '--csv'],
    ]
    const printed: Record<string, string> = {}
    for (const command of commands) printed[command.join(' ')] = await ops(...command)
    return printed
  }
}

type Line = { day: string; reference: string; paise: number }
type Row = { amount: number; fee?: number; tax?: number; paymentUtr?: string; utr: string; event?: string }

const SETTLEMENT_HEADER = 'mid,amount,fee,tax,payment_utr,utr,bank_reference_number,status,initiation_date,event'

function lineOf(row: Row, { mid, reference }: { mid: string; reference: string }, day: string): string {
  const { amount, fee, tax, paymentUtr = '', utr, event = '' } = row
  const charges = [fee, tax].map((paise) => (paise === undefined ? '' : rupees(paise)))
  return [mid, rupees(amount), ...charges, paymentUtr, utr, reference, 'SUCCESS', `${day} 09:00:00`, event].join()
}

const chargesOf = ({ paise, account, kind }: Movement) => {
  const fee = account === 'direct' || kind !== 'payment' ? 0 : Math.round(paise * 0.004)
  return { fee, tax: Math.round(fee * 0.18) }
}

/** The rows of a payout: each item named, one total, or some items named and a total of the others. */
function rowsOf(
  { account, items, reference }: { account: Account; items: Movement[]; reference: string },
  form: Form,
): Row[] {
  const isDisputed = (one: Movement) => one.kind.startsWith('dispute')
  const named = items.filter(
    (one, index) => /rows|pulled/.test(form) || isDisputed(one) || (form === 'parts' && index % 2 === 0),
  )
  const rows = named.map((one, index): Row => {
    const { fee, tax } = chargesOf(one)
    const event = {
      payment: 'PAYMENT',
      refund: 'REFUND',
      dispute: 'CHARGEBACK',
      'dispute reversal': 'CHARGEBACK_REVERSE',
    }
    return {
      ...{
        amount: one.paise - fee - tax,
        paymentUtr: one.bankReference ?? one.utr,
        utr: `S${index}${reference}`,
        event: event[one.kind],
      },
      ...(account !== 'direct' && one.kind === 'payment' && { fee, tax }),
    }
  })
  const others = items.filter((one) => !named.includes(one))
  if (others.length === 0) return rows
  const charges = others.map(chargesOf)
  const [fee, tax] = [charges.reduce((sum, one) => sum + one.fee, 0), charges.reduce((sum, one) => sum + one.tax, 0)]
  const gross = others.reduce((sum, { paise }) => sum + paise, 0)
  return [...rows, { amount: gross - fee - tax, utr: `T${reference}`, ...(account !== 'direct' && { fee, tax }) }]
}

const EVENT_TYPES = {
  payment: 'PAYMENT',
  refund: 'REFUND',
  dispute: 'DISPUTE',
  'dispute reversal': 'DISPUTE_REVERSAL',
}

/** An item of a payout in Cashfree's API. */
function eventOf(item: Movement, reference: string, day: string): ReconEvent {
  const { fee, tax } = chargesOf(item)
  const { kind, orderId, utr, bankReference = utr, id, paise } = item
  return reconEvent(EVENT_TYPES[kind], {
    order_details: { order_id: orderId },
    payment_details: { bank_reference: bankReference, cf_payment_id: kind === 'payment' ? id : null },
    event_details: {
      ...{ event_amount: Math.abs(paise) / 100, event_settlement_amount: Math.abs(paise - fee - tax) / 100 },
      ...{ event_service_charge: fee / 100, event_service_tax: tax / 100, sale_type: paise < 0 ? 'DEBIT' : 'CREDIT' },
    },
    settlement_details: { utr: reference, settlement_initiated_on: `${day}T09:00:00+05:30`, settlement_date: null },
  })
}

const columns = () =>
  ['day=Date', 'reference=Reference', 'debit=Withdrawal', 'credit=Deposit', 'balance=Balance'].flatMap((column) => [
    '--column',
    column,
  ])

/** The day in India that many days after the world's beginning. */
export const dayOf = (number: number) => addDays(new Date(BEGIN + 19_800_000).toISOString().slice(0, 10), number)
