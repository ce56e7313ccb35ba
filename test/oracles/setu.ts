import { setu as acquirer } from '../../src/gateway/acquirers/setu/client.ts'
import { SETU_SECRETS, setuSettings } from '../support/fake-setu.ts'
import { type FakeSetu, startFakeSetu } from '../support/setu-bank.ts'
import type { Scene } from './scene.ts'
import { fieldsIn } from './shapes.ts'

const CREDENTIALS = setuSettings({ url: '', loginUrl: '' })

const REASON =
  'reason reason.code reason.desc reason.mandateRevokeReason reason.npciErrCategory reason.npciErrCode reason.npciErrDesc ' +
  'reason.npciRespCode reason.npciRespDesc reason.setuDescription reason.suggestedAction'
const QR =
  'amount createdAt expiryDate id intentLink merchantId merchantVpa metadata minAmount qrCode refId referenceId ' +
  'shortLink status=inactive/active/paid/closed transactionNote'
const REFUND =
  'amount createdAt crn id paymentId reason reason.adjCode reason.adjFlag reason.errCode reason.npciErrCode ' +
  'reason.npciErrDesc referenceId remarks status=pending/initiated/success/failed type'

/** Setu publishes no client, but an OpenAPI document: these are its methods, paths, fields and enums. */
export const setu: Scene<FakeSetu> = {
  start: () => startFakeSetu({ ...CREDENTIALS, notificationSecret: SETU_SECRETS[0], now: () => new Date() }),
  connector: (bank, http) => acquirer.client?.({ setu: setuSettings(bank) }, http, () => performance.now()) as never,
  shapes: {
    createDqr: {
      line: 'POST /api/v1/merchants/dqr',
      sent: fieldsIn('amount expiryDate merchantVpa! metadata minAmount referenceId transactionNote'),
      returned: fieldsIn(QR),
    },
    expireDqr: { line: 'PUT /api/v1/merchants/dqr/{id}/expire', returned: fieldsIn(`${QR} closedAt ${REASON}`) },
    last: {
      line: 'GET /api/v1/merchants/payments/product-instances/{id}/last',
      returned: fieldsIn(
        'amount! bin createdAt currency customerAccountType=SAVINGS/CURRENT/CREDIT customerVpa! id merchantId ' +
          `merchantVpa! metadata productInstanceId! refId referenceId rrn status=initiated/pending/success/failed txnId txnNote txnTs ${REASON}`,
      ),
    },
    refund: {
      line: 'POST /api/v1/merchants/refunds',
      sent: fieldsIn('amount! crn paymentId! referenceId remarks type'),
      returned: fieldsIn(REFUND),
    },
    refundsOfPayment: {
      line: 'GET /api/v1/merchants/refunds/{paymentTxnId}/payment',
      returned: fieldsIn(`paymentTxnId refunds! refunds.requestId refunds.${REFUND.replaceAll(' ', ' refunds.')}`),
    },
  },
}
