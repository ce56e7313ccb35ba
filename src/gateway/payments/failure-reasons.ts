import * as z from 'zod'
import { errorText, matching } from '../../platform/fields.ts'

/** The reasons why an attempt to pay can fail: a closed set for merchants and customers. */
export const FAILURE_REASONS = [
  'wrong_pin',
  'pin_tries_exceeded',
  'insufficient_funds',
  'limit_exceeded',
  'bank_unavailable',
  'declined_by_customer',
  'not_authorised_in_time',
  'risk_declined',
  'account_problem',
  'payee_not_allowed',
  'other',
] as const

export type FailureReason = (typeof FAILURE_REASONS)[number]

/** `code` is the reported bank code, unchanged; undefined if no code was reported. */
export type PaymentFailure = { reason: FailureReason; code?: string | undefined }

/**
 * NPCI's codes for payments by link or QR, grouped by the reason that they indicate. Sources, read in November 2026:
 * NPCI, "UPI Error and Response Codes", as published by m2p (version 2.5); Juspay and HDFC SmartGateway, pages of
 * response codes. ZH, UX, ZG, ZE, ZB, YG and X1 come from the step in which the payee's bank authorizes, so these codes
 * are about the payee.
 */
const CODES: Record<FailureReason, string> = {
  wrong_pin: 'ZM',
  pin_tries_exceeded: 'Z6',
  insufficient_funds: 'Z9 IE',
  limit_exceeded: 'Z7 Z8 ZU U02 U03 FL',
  bank_unavailable:
    'U28 U30 XY XT U08 U09 U13 U18 U20 U22 U23 U24 U27 U40 U41 U44 U45 U72 U80 U81 U84 U85 U86 U89 U90 U91 U92 U93 U94 ' +
    'S93 S94 S96 S97 S98 HS1 HS2 HS3 Y1 XU U78 X7 YG U31 U26 U53 U67 U68 U70 U82 U87 U88 S95 UT BT UP',
  declined_by_customer: 'ZA',
  not_authorised_in_time: 'U69 X1',
  risk_declined: 'U16 M16 59 K1 ZI CI XV FP',
  account_problem: 'B1 AM U66 ZF ZX YE B3 XH XJ XL XN XP XR XX YA YC 15 QU U74 MR VO VP VQ VR VZ',
  payee_not_allowed: 'ZH UX ZG ZE ZB YF ZY XI YD XW X6 XK XM XO XQ XS YB YH Z5 ZN ZO ZP PS LC MB MQ7 CA U71 U77 U95',
  other: 'XB XC XD XE XF XG ZD B6 U17 U19 U29 U34 U39 U43 U48 U54 U96 12 52 NO 21',
}

const REASON_OF = new Map(
  Object.entries(CODES).flatMap(([reason, codes]) => codes.split(' ').map((code) => [code, reason as FailureReason])),
)

/** Codes that state only that the debit failed. A second code in the same report indicates the cause. */
const WITHOUT_CAUSE = new Set('U19 U29 U30 U31 U34 U39 U43'.split(' '))

/** Codes for payments in progress, for reversals and for duplicates. An attempt with such a code may still succeed. */
const WITHOUT_END = new Set('01 RB RR RP 32 ZQ U32 U33 U37 96 U01 DT DF U35 U36 U38 U42'.split(' '))

/**
 * Returns why an attempt failed, from an acquirer's codes, which are ordered from most to least reliable. A code that
 * is not text of at most 64 printable characters is treated as absent. `otherwise` is the reason if no code has a known
 * reason. Returns undefined if nothing indicates a reason; `under way` if the attempt may still succeed although the
 * acquirer reports a failure.
 */
export function readFailure(
  codes: readonly unknown[],
  otherwise?: FailureReason,
): PaymentFailure | 'under way' | undefined {
  const reported = codes.flatMap((code) => FailureCode.safeParse(code).data ?? [])
  const isKnown = (code: string) => REASON_OF.has(code) || WITHOUT_END.has(code)
  const causes = reported.filter((code) => !WITHOUT_CAUSE.has(code))
  const code = causes.find(isKnown) ?? causes[0] ?? reported.find(isKnown) ?? reported[0]
  if (code !== undefined && WITHOUT_END.has(code)) return 'under way'
  const reason = REASON_OF.get(code ?? '') ?? otherwise ?? (code === undefined ? undefined : 'other')
  return reason && { reason, code }
}

/** Returns the first reason in an acquirer's own table whose entry matches; undefined if none does. */
export const findReason = <Entry>(
  table: Partial<Record<FailureReason, Entry>>,
  matches: (entry: Entry) => boolean,
): FailureReason | undefined =>
  (Object.entries(table) as [FailureReason, Entry][]).find(([, entry]) => matches(entry))?.[0]

const FailureCode = matching(/^[!-~]{1,64}$/, 'must be 1 to 64 printable ASCII characters')

/** Fields of a report in the service's own format. If `reason` is absent, the `code` determines it. */
export const failureFields = {
  reason: z
    .enum(FAILURE_REASONS, errorText(`must be one of ${FAILURE_REASONS.join(', ')}`))
    .meta({ description: 'Why the attempt failed. If it is absent, `code` determines the reason.' })
    .optional(),
  code: FailureCode.meta({ description: 'The failure code of NPCI or of the bank.', example: 'ZM' }).optional(),
}

type FailureFields = { status: string; reason?: FailureReason | undefined; code?: string | undefined }

/** Returns the failure in a report with `failureFields`, in the form that readFailure returns. */
export function failureIn({ status, reason, code }: FailureFields) {
  if (status === 'SUCCESS') return undefined
  return reason ? { reason, code } : readFailure([code])
}
