import { fetchSettlementList, fetchSettlementListOfMerchant } from './books/settlements/fetch-settlement-list.ts'
import { paymentNotification } from './gateway/acquirers/direct/notifications.ts'
import { payLogo } from './gateway/checkout/logo.ts'
import { payPage } from './gateway/checkout/pay-page.ts'
import { payQrPng, payQrSvg } from './gateway/checkout/qr.ts'
import { fetchDisputeList } from './gateway/disputes/fetch-dispute-list.ts'
import { cancelPayment } from './gateway/payments/cancel-payment.ts'
import { checkPaymentStatus } from './gateway/payments/check-payment-status.ts'
import { createOrderRequest, createPaymentIntent } from './gateway/payments/create.ts'
import { fetchOrderList } from './gateway/payments/fetch-order-list.ts'
import { fetchTransactionList, fetchTransactionListOfPartner } from './gateway/payments/fetch-transaction-list.ts'
import { checkRefundStatus } from './gateway/refunds/check-refund-status.ts'
import { fetchRefundList } from './gateway/refunds/fetch-refund-list.ts'
import { refundPayment } from './gateway/refunds/refund-payment.ts'
import { fetchMerchantList } from './gateway/tenants/fetch-merchant-list.ts'
import { livez, readyz } from './platform/http/health.ts'

/** All operations, in the order of the OpenAPI document. */
export const OPERATIONS = {
  v1: [
    createPaymentIntent,
    createOrderRequest,
    checkPaymentStatus,
    cancelPayment,
    refundPayment,
    checkRefundStatus,
    fetchOrderList,
    fetchTransactionList,
    fetchSettlementListOfMerchant,
    fetchRefundList,
    fetchDisputeList,
    fetchSettlementList,
    fetchTransactionListOfPartner,
    fetchMerchantList,
  ],
  acquirer: [paymentNotification],
  pages: [payPage, payQrPng, payQrSvg, payLogo],
  health: [livez, readyz],
}

/**
 * Returns the operations for the OpenAPI documents. The operation for notifications in the service's own format is
 * omitted if no bank has a secret for such notifications.
 */
export const documentedOperations = (acceptsNotifications: boolean) =>
  Object.values({ ...OPERATIONS, ...(!acceptsNotifications && { acquirer: [] }) }).flat()
