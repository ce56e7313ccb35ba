import * as z from 'zod'
import type { PaymentReport } from '../../payments/outcome.ts'
import { accountName, type SetuSettings } from '../accounts.ts'
import type { Acquirer } from '../acquirer.ts'
import type { AcquirerClient, LinkedOrder } from '../client.ts'
import { paise, readStatus, reportedId, UnreadableStatus } from '../json-request.ts'
import { createSetuRequest, NAME, paymentFields, toPaymentReport } from './http.ts'
import { setuLinks } from './links.ts'
import { setuNotifications } from './notifications.ts'
import { setuRefunds } from './refunds.ts'

/*
 * Setu UMAP. This client is based only on Setu's published OpenAPI document (dynamic QR, payments, refunds) and guides
 * (login, notifications). The guide setu.md describes how to test in the sandbox.
 */

export const setu: Acquirer<{ setu?: SetuSettings | undefined }> = {
  variables: 'SETU_CLIENT_ID, SETU_CLIENT_SECRET and SETU_NOTIFICATION_SECRETS',
  // Setu documents no longest time.
  longestExpiryMinutes: () => 24 * 60,
  errorOf({ vpa, acquirerMerchantId }) {
    if (!acquirerMerchantId) return 'setu requires --acquirer-merchant-id, the identifier of the merchant at Setu'
    return SETU_VPA.test(vpa) ? undefined : 'setu accepts a --vpa of a-z 0-9 . - before the @ and letters after it'
  },
  notifications: ({ setu: account }) => account && setuNotifications(account),
  /**
   * NPCI's operating circular 215 of 26 April 2025 allows members three status checks per payment, the first check 90 s
   * after the start of the payment. Setu documents no limit per account.
   */
  statusCheckRules: {
    most: 3,
    firstAfterMs: 90_000,
    pauseMs: 60_000,
    // Delays the second check to half of the time to pay: a merchant that polls would otherwise use both checks
    // immediately.
    pollingPauseMs: (ageMs, timeToPayMs) => timeToPayMs / 2 - ageMs,
  },
  client: ({ setu: account }, http, elapsedMs) =>
    account && setuClient(account, createSetuRequest(account, http, elapsedMs)),
}

/** The format of a payee's UPI address at Setu. Setu rejects any other format. */
const SETU_VPA = /^[a-z0-9.-]*@[a-zA-Z]*$/

/** UPI address of the sandbox's simulated customer. No bank assigns this address. */
const SIMULATED_CUSTOMER = 'customer@thisisnobank'

/** NPCI's code for insufficient funds, used by simulated failures. */
const NO_FUNDS = 'Z9'

/**
 * A payment's status response. Every field is optional, so that a response with missing fields is reported as
 * unreadable.
 */
const PaymentResponse = z.object({
  ...paymentFields,
  status: z.unknown().optional(),
  productInstanceId: z.unknown().optional(),
  amount: paise.optional().catch(undefined),
})

export function setuClient(
  { account }: SetuSettings,
  { request, logIn }: ReturnType<typeof createSetuRequest>,
): AcquirerClient {
  const name = accountName(NAME, account)

  async function getPayments({ orderId, paymentLink }: LinkedOrder, signal?: AbortSignal): Promise<PaymentReport[]> {
    const path = `payments/product-instances/${paymentLink.id}/last`
    const response = await request({ method: 'GET', path, merchantId: paymentLink.merchantId }, signal, [200, 404])
    // Setu returns 404 until the first attempt to pay, so the order has no payments.
    if (response.status === 404) return []
    const last = readStatus(PaymentResponse, response, 'Setu returned a payment in an unknown format', orderId)
    if (last.status === 'initiated' || last.status === 'pending') return []
    const productInstanceId = reportedId(last.productInstanceId, paymentLink.id)
    const isNamed = last.rrn !== undefined || last.id !== undefined
    const isPaid = last.status === 'success' && last.amount !== undefined && isNamed
    if (isPaid || last.status === 'failed') {
      const report = toPaymentReport(name, orderId, isPaid ? 'SUCCESS' : 'FAIL', { ...last, productInstanceId })
      return report ? [report] : []
    }
    const message = 'Setu returned a payment whose status, amount or reference is unreadable'
    throw new UnreadableStatus(response, message, orderId)
  }

  return {
    ...setuLinks(name, request),
    ...setuRefunds(request, getPayments),
    getPayments,
    check: async (signal) => void (await logIn(signal)),

    async simulate({ merchantId, reference }, { payeeVpa, amount, succeeds }, signal) {
      const played = { refId: reference, payeeVpa, payerVpa: SIMULATED_CUSTOMER, amount }
      const body = succeeds ? played : { ...played, payerRespCode: NO_FUNDS }
      await request({ method: 'POST', path: 'pay', merchantId, body }, signal, [200])
    },
  }
}
