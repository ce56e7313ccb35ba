import * as z from 'zod'
import { idempotencyKeyReused, orderIdExists } from '../errors.ts'
import { operation, success } from '../http/operation.ts'
import { IDEMPOTENCY_KEY_HEADER } from './idempotency.ts'
import { BAD_NEW_PAYMENT, NEW_PAYMENT, orderId } from './new-payment.ts'
import { type NewPaymentDependencies, storeNewPayment } from './store-new-payment.ts'

export const createOrderRequest = operation({
  path: '/v1/payments/createOrderRequest',
  tag: 'Merchant',
  summary: 'Create an order and a page to pay it',
  description:
    'Takes the fields of createPaymentIntent and answers the address of our pay page. Send the customer there; the page ' +
    'sends them on to `redirect_url`. Then ask checkPaymentStatus.',
  headers: [IDEMPOTENCY_KEY_HEADER],
  body: NEW_PAYMENT,
  refusals: [BAD_NEW_PAYMENT, orderIdExists(), idempotencyKeyReused()],
  answer: success('Order request created successfully', {
    description: 'The order.',
    name: 'OrderRequestCreated',
    dataName: 'OrderRequest',
    data: z.strictObject({ orderId, payment_url: z.url().meta({ description: 'The page to send the customer to.' }) }),
    example: {
      orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
      payment_url: 'http://localhost:3000/pay/019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
    },
  }),
  handle: ({ publicUrl, ...dependencies }: NewPaymentDependencies & { publicUrl: string }) => {
    return async (request) => {
      const { intent } = await storeNewPayment('createOrderRequest', request, dependencies)
      return { orderId: intent.orderId, payment_url: `${publicUrl}/pay/${intent.orderId}` }
    }
  },
})
