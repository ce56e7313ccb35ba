import { type Demo, SETTLED_MONTH } from './demo.ts'
import type { DemoWebhook } from './demo-webhook.ts'

/** The commands that `npm start` prints for a second terminal. Their order_id contains `now`, so each start differs. */
export function demoCommands(demo: Demo & { webhook: DemoWebhook }, now: Date): string {
  const base = (process.env.PUBLIC_URL || `http://localhost:${process.env.PORT || 3000}`).replace(/\/+$/, '')
  const orderId = `demo-${Math.floor(now.getTime() / 1000)}`
  const order = {
    mid: demo.mid,
    amount: '200',
    order_id: orderId,
    redirect_url: `${base}/docs/thanks?order_id=${orderId}`,
    note: 'Two cups of masala chai',
    customer_name: 'Asha Rao',
    customer_email: 'asha@shop.example',
    customer_mobile: '9876543210',
  }
  const settlements = { pid: demo.pid, mid: demo.mid, s_date: SETTLED_MONTH.first, e_date: SETTLED_MONTH.last }
  const { OPS_PORT, ACQUIRER_SECRETS } = process.env
  return [
    '',
    'Ready, with a demo merchant and a demo partner.',
    '',
    '1. Take a first payment. In a second terminal, as the merchant:',
    '',
    environment({ BASE_URL: base, MID: demo.mid }, demo.merchantKey),
    '',
    '   This key may also refund; any other may not until the operator lets it.',
    '   Create a payment intent. The answer has links that open UPI apps, a QR code, and our orderId:',
    '',
    `ANSWER=$(${curl('/v1/payments/createPaymentIntent', order)}) && echo "$ANSWER"`,
    '',
    '   Its pay page is /pay/ and that orderId. Print its address, and open it in a browser:',
    '',
    `echo "$BASE_URL/pay/$(echo "$ANSWER" | sed -n 's/.*"orderId":"\\([^"]*\\)".*/\\1/p')"`,
    '',
    '   To see the webhook that tells the merchant of the payment, start a receiver in a terminal in this folder:',
    '',
    `WEBHOOK_SECRET=${demo.webhook.secret} PORT=${demo.webhook.port} node src/dev/receive-webhooks.mjs`,
    '',
    '   Press "Simulate payment" on the page. Then ask what became of it:',
    '',
    curl('/v1/payments/checkPaymentStatus', { mid: demo.mid, order_id: orderId }),
    '',
    '   createOrderRequest takes the same fields and answers the address of the pay page, as payment_url.',
    '',
    '2. See what the bank has paid out. In a third terminal, as the partner:',
    '',
    environment({ BASE_URL: base, PID: demo.pid, MID: demo.mid }, demo.partnerKey),
    '',
    curl('/v1/partner/fetchSettlementList', settlements),
    '',
    ...(ACQUIRER_SECRETS
      ? [
          "3. Be the bank that tells of a payment: what the samples of the acquirer's guide need:",
          '',
          `export BASE_URL=${base}`,
          `export ACQUIRER_SECRET=${ACQUIRER_SECRETS.split(',')[0]}`,
          '',
        ]
      : []),
    'Read on in a browser:',
    '',
    `   ${base}/docs   guides with samples, and every operation to try`,
    `   http://localhost:${OPS_PORT || 3001}   today on one page, for whoever runs the service; the guide for it is at /docs`,
    '',
  ].join('\n')
}

function environment(names: Record<string, string>, { publicKey, secretKey }: Demo['merchantKey']): string {
  const values = Object.entries({ ...names, PUBLIC_KEY: publicKey, SECRET_KEY: secretKey })
  return values.map(([name, value]) => `export ${name}=${value}`).join('\n')
}

/** A curl command. `-w` prints a newline after the answer, so that the prompt begins a new line. */
function curl(path: string, fields: Record<string, string>): string {
  const data = Object.entries(fields).map(([name, value]) => `--data-urlencode '${name}=${value}'`)
  const lines = [`curl -sS -w '\\n' -u "$PUBLIC_KEY:$SECRET_KEY"`, `"$BASE_URL${path}"`, ...data]
  return lines.join(' \\\n  ')
}
