import { toSumText } from '../../platform/money.ts'
import type { Unnamed } from './differences.ts'

/**
 * What an acquirer may keep from the day `since` on, in hundredths of a percent: `fee` of a payment, `tax` of that fee. Null
 * where nothing is expected.
 */
export type FeeContract = { acquirer: string; since: string; fee: number | null; tax: number | null }

/** What a row of the bank says was kept, in paise; `gross` is with fee and tax. */
type Charged = {
  mid: string
  utr: string
  day: string
  account: string | null
  gross: bigint
  fee: bigint | null
  tax: bigint | null
}
type ChargedPayment = { utr: string; orderId: string; account: string; amount: bigint }

const percentOf = (paise: bigint, hundredths: number) => (paise * BigInt(hundredths) + 5_000n) / 10_000n

/** The lowest share that a row may keep, fee and tax together, in hundredths of a percent; undefined where no contract says one. */
export function lowestShare(contracts: readonly FeeContract[]): number | undefined {
  const shares = contracts.flatMap(({ fee, tax }) =>
    fee === null || tax === null ? [] : [Math.floor((fee * (10_000 + tax)) / 10_000)],
  )
  return shares.length === 0 ? undefined : Math.min(...shares)
}

/**
 * What the acquirer kept of a row above the contract. Each payment may differ by one paisa, since fee and tax are rounded, half up;
 * a sum has `count` of them. A row that states neither is not judged.
 */
export function judgeFee(
  row: Charged,
  payment: ChargedPayment | undefined,
  count: number,
  contracts: readonly FeeContract[],
): Unnamed | undefined {
  const { mid, fee, tax, day, gross } = row
  const contract = contractOf(row.account?.split(':')[0] ?? payment?.account, day, contracts)
  if ((fee === null && tax === null) || contract?.fee == null || contract.tax === null) return undefined
  const mayFee = percentOf(payment?.amount ?? gross, contract.fee)
  const may = mayFee + percentOf(mayFee, contract.tax)
  const kept = (fee ?? 0n) + (tax ?? 0n)
  if (kept - may <= BigInt(count)) return undefined
  const percents = [contract.fee, contract.tax].map((hundredths) => toSumText(BigInt(hundredths)))
  return {
    ...{ mid, day, kind: 'fee above the contract', orderId: payment?.orderId ?? null, settlementUtr: row.utr },
    utr: payment?.utr ?? null,
    ...{ paid: gross, settled: gross - (kept - may), exceptionId: null, resolution: null },
    cause: `fee and tax are ${toSumText(kept)}, and ${toSumText(may)} by the contract of ${percents[0]} % and ${percents[1]} % tax`,
  }
}

/** The contract of the acquirer on the day; where the row names none, the merchant's only one. `contracts` come newest first. */
function contractOf(acquirer: string | undefined, day: string, contracts: readonly FeeContract[]) {
  const isOnly = new Set(contracts.map((one) => one.acquirer)).size === 1
  return contracts.find((one) => one.since <= day && (acquirer === undefined ? isOnly : one.acquirer === acquirer))
}
