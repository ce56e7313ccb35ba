import { createBankDays } from '../../src/books/ledger/bank-days.ts'
import type { AcquirerSettings } from '../../src/gateway/acquirers/accounts.ts'
import { utrOfId } from '../../src/platform/fields.ts'
import { toIstText } from '../../src/platform/time.ts'
import { NOTIFY, notification, sign } from '../support/acquirer.ts'
import type { CallFault, NotificationFaults } from '../support/bank-faults.ts'
import type { BookedRefund, RefundFaults } from '../support/bank-refunds.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import { type ReconEvent, serveRecon } from '../support/cashfree-recon.ts'
import { CASHFREE, CASHFREE_SECRETS } from '../support/fake-cashfree.ts'
import { PHONEPE } from '../support/fake-phonepe.ts'
import { RAZORPAY } from '../support/fake-razorpay.ts'
import { SETU } from '../support/fake-setu.ts'
import { startBank } from '../support/service-with-bank.ts'
import { ACCOUNTS, type Account, type Attempt, type Found } from './plan.ts'

/*
 * The acquirers' fakes, and the customers' and merchants' bank. What they have recorded is the truth: a payment, a refund or a
 * payout happened if it is here, whatever the service knows.
 */

const paidNow = () => ({ paidAt: toIstText(new Date()) })

/** Money that moved. `paise` are what the acquirer received for the merchant; negative if it gave them away. */
export type Movement = {
  kind: 'payment' | 'refund' | 'dispute' | 'dispute reversal'
  account: Account
  mid: string
  orderId: string
  /** How the service names the payment: by the bank's reference, or without one by the acquirer's id. */
  utr: string
  /** The bank's reference, if the service does not learn it with the payment. */
  bankReference?: string
  /** Identifier of the refund or dispute. */
  id: string
  paise: number
  day: string
  /** IST time at which the customer paid. */
  paidAt: string
  /** Whether no status check finds it: the service knows it by a notification or by the acquirer's report. */
  isUnchecked: boolean
  /** Whether the acquirer pays it out one bank day later than usual. */
  isLate: boolean
  /** Whether the customer typed the address, so that the bank does not know the order. */
  isTyped?: boolean
  /** A payment by typed address, whose order an operator has not found yet. */
  unconfirmed?: Found
  settledOn?: string
}

type FakeBank = {
  notifyUrl: string | undefined
  violations: string[]
  nextFaults: Record<string, CallFault[]>
  pay: (
    orderId: string,
    how: { outcome: Attempt['outcome']; rrn: string; faults: NotificationFaults },
  ) => Promise<{ payment: { status: string; amount: number } }>
  paid: () => { orderId: string; amount: number; utr: string; id: string }[]
  refunds: { all: BookedRefund[]; faults: RefundFaults; endLate: () => Promise<void> }
  sendWaiting: () => Promise<void>
}

/** Calls of each fake that create a link, and that check a payment or a refund. */
const CALLS = {
  setu: { link: 'createDqr', check: 'last', refund: 'refund' },
  cashfree: { link: 'openSession', check: 'payments', refund: 'refund' },
  phonepe: { link: 'createOrder', check: 'order', refund: 'refund' },
  razorpay: { link: 'createPayment', check: 'payments', refund: 'refund' },
} as const
type Linking = keyof typeof CALLS

const STARTERS = { setu: SETU, cashfree: CASHFREE, phonepe: PHONEPE, razorpay: RAZORPAY }
const { isBankDay } = createBankDays(new Set())

export type Banks = Awaited<ReturnType<typeof startBanks>>

/** `balancer` is the address of the service, and `today` the world's day in India. */
export async function startBanks(balancer: string, today: () => string) {
  const settings: Partial<AcquirerSettings> = {}
  const fakes = new Map<Account, FakeBank>()
  for (const [name, starter] of Object.entries(STARTERS)) {
    const bank = await startBank<never>(starter as never, () => new Date())
    Object.assign(settings, starter.settings(bank))
    Object.assign(bank, { notifyUrl: balancer + starter.path })
    fakes.set(name as Account, bank)
  }
  const cashfree = fakes.get('cashfree') as never as FakeCashfree
  for (const { refunds } of fakes.values()) refunds.faults = { late: 0.3, failed: 0.1, lost: 0.2, repeated: 0.1 }
  const movements: Movement[] = []
  const known = new Set<string>()
  let lastReference = 7_000_000

  return {
    settings,
    movements,
    /** Settings of a command that calls Cashfree. */
    environment: {
      CASHFREE_API_URL: settings.cashfree?.apiUrl ?? '',
      CASHFREE_CLIENT_ID: settings.cashfree?.clientId ?? '',
      CASHFREE_CLIENT_SECRET: CASHFREE_SECRETS.join(),
    },
    serveRecon: (events: ReconEvent[]) => serveRecon(cashfree, { data: events }),
    violations: () => [...fakes.values()].flatMap(({ violations }) => violations.splice(0)),
    fault,
    pay,
    payDirectly,
    noteRefunds,
    payOut,
    newReference,
    refundsOf: (account: Account) => fakes.get(account)?.refunds.all ?? [],

    /** Sends what is late, and ends the refunds that are late. */
    async sendLate() {
      for (const bank of fakes.values()) {
        await bank.sendWaiting()
        await bank.refunds.endLate()
      }
    },

    /** Adds money that moved outside a payment or refund of the fakes. */
    move: (movement: Movement) => movements.push(movement),
  }

  /** The next call of this kind at the account has a fault. */
  function fault(account: Account, call: 'link' | 'check' | 'refund', how: CallFault | undefined) {
    const bank = fakes.get(account)
    const name = CALLS[account as Linking]?.[call]
    if (bank && name) bank.nextFaults[name] = how === undefined ? [] : [how]
  }

  /** A customer's attempt by an acquirer's link. Returns what happened, or why the customer could not pay. */
  async function pay(
    order: { account: Account; orderId: string; mid: string; isLate: boolean; isUnchecked: boolean },
    { outcome, faults, hasLateReference }: Attempt,
  ): Promise<string> {
    const { account, orderId } = order
    const bank = fakes.get(account) as FakeBank
    const rrn = hasLateReference ? '' : newReference()
    try {
      const { payment } = await bank.pay(orderId, { outcome, rrn, faults })
      note(order)
      return `${payment.status} ${rrn}`
    } catch (error) {
      return (error as Error).message
    }
  }

  /** Notes the payments of an order that are not noted yet. */
  function note({ account, orderId, mid, isLate, isUnchecked }: Parameters<typeof pay>[0]) {
    for (const { utr, id, amount, ...one } of fakes.get(account)?.paid() ?? []) {
      if (one.orderId !== orderId || known.has(`${account} ${id}`)) continue
      known.add(`${account} ${id}`)
      const references = utr === '' ? { utr: utrOfId(id), bankReference: newReference() } : { utr }
      const names = { account, mid, orderId, ...references, id, isLate, isUnchecked }
      movements.push({ kind: 'payment', ...names, paise: amount, day: today(), ...paidNow() })
    }
  }

  /** A payment to the merchant's own UPI address. Returns the signed notifications. */
  function payDirectly(
    { orderId, mid, paise, isLate }: { orderId: string; mid: string; paise: number; isLate: boolean },
    { outcome, otherAmount, isTyped, found, faults }: Attempt,
  ) {
    const utr = newReference()
    const received = otherAmount ? paise + 100 : paise
    if (outcome === 'pending') return { utr, received, requests: [] }
    const status = outcome === 'success' ? 'SUCCESS' : 'FAIL'
    const bank = { UTR: utr, status, amount: received / 100, paidAt: new Date().toISOString() }
    const body = notification(isTyped ? 'UPI' : orderId, bank)
    const requests = faults.lost ? [] : Array.from({ length: faults.repeated ? 2 : 1 }, () => body)
    const forged = faults.forged ? [notification(orderId, { ...bank, status: 'SUCCESS' })] : []
    // The bank returns money that belongs to no order, or of another amount.
    const isKept = status === 'SUCCESS' && !otherAmount && (!isTyped || found !== undefined)
    if (isKept) {
      const names = { account: 'direct', mid, orderId, utr, id: utr } as const
      movements.push({
        kind: 'payment',
        ...names,
        paise: received,
        day: today(),
        ...paidNow(),
        isLate,
        isUnchecked: false,
        ...(isTyped && found && { isTyped, unconfirmed: found }),
      })
    }
    const signed = (body: string, secret?: string) => ({
      ...{ path: NOTIFY, body },
      headers: { 'content-type': 'application/json', 'x-signature': sign(body, new Date(), secret) },
    })
    return {
      ...{ utr, received },
      requests: [...requests.map((body) => signed(body)), ...forged.map((body) => signed(body, 'of-somebody-else'))],
    }
  }

  /** Notes the refunds that the acquirers have carried out, and those whose money came back. */
  function noteRefunds() {
    for (const [account, { refunds }] of fakes) {
      for (const { id, ourRefundId, paymentId, amount, status } of refunds.all) {
        if (status !== 'success' || ourRefundId === '' || known.has(`${account} refund ${id}`)) continue
        known.add(`${account} refund ${id}`)
        const of = movements.find((one) => one.account === account && one.kind === 'payment' && one.id === paymentId)
        if (of === undefined) throw new Error(`${account} refunded ${paymentId}, which no customer paid`)
        const { settledOn: _, ...names } = of
        movements.push({ ...names, kind: 'refund', id: ourRefundId, paise: -amount, day: today(), isLate: false })
      }
    }
  }

  function newReference(): string {
    lastReference += 1
    return `52${String(lastReference).padStart(10, '0')}`
  }

  /** The movements that an account pays out on a bank day, by merchant. A negative sum waits for the next payments. */
  function payOut(day: string): { mid: string; account: Account; items: Movement[]; reference: string }[] {
    if (!isBankDay(day)) return []
    const mids = [...new Set(movements.map(({ mid }) => mid))]
    return ACCOUNTS.flatMap((account) =>
      mids.flatMap((mid) => {
        const open = movements.filter(
          (one) => one.account === account && one.mid === mid && one.settledOn === undefined,
        )
        const items = open.filter((one) => one.day < day && !one.isLate)
        for (const one of open) if (one.day < day) one.isLate = false
        const paise = items.reduce((sum, one) => sum + one.paise, 0)
        if (items.length === 0 || paise < 100) return []
        for (const one of items) one.settledOn = day
        const reference = `PAY${newReference()}`
        return [{ mid, account, items, reference }]
      }),
    )
  }
}
