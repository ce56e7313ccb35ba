import { paymentNotification } from './acquirer/direct.ts'
import { payPage } from './checkout/pay-page.ts'
import { payQrPng, payQrSvg } from './checkout/qr.ts'
import { livez, readyz } from './http/health.ts'
import { cancelPayment } from './payments/cancel-payment.ts'
import { checkPaymentStatus } from './payments/check-payment-status.ts'
import { createOrderRequest, createPaymentIntent } from './payments/create.ts'
import { fetchTransactionList, fetchTransactionListOfPartner } from './payments/fetch-transaction-list.ts'
import { checkRefundStatus } from './refunds/check-refund-status.ts'
import { refundPayment } from './refunds/refund-payment.ts'
import { fetchSettlementList } from './settlements/fetch-settlement-list.ts'

/** All operations, in the order of the OpenAPI document. */
export const OPERATIONS = {
  v1: [
    createPaymentIntent,
    createOrderRequest,
    checkPaymentStatus,
    cancelPayment,
    refundPayment,
    checkRefundStatus,
    fetchTransactionList,
    fetchSettlementList,
    fetchTransactionListOfPartner,
  ],
  acquirer: [paymentNotification],
  pages: [payPage, payQrPng, payQrSvg],
  health: [livez, readyz],
}

/** Operations for the documents, without notifications in the service's own format where no bank may send them. */
export const documentedOperations = (takesNotifications: boolean) =>
  Object.values({ ...OPERATIONS, ...(!takesNotifications && { acquirer: [] }) }).flat()
