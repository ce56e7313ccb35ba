import { type Demo, SETTLED_MONTH } from './demo.ts'
import type { DemoWebhook } from './demo-webhook.ts'

/**
 * Returns the commands that `npm start` prints for a second terminal. Their order_id contains `now`, so each start uses
 * a new order_id.
 */
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
  const { OPS_PORT, CONSOLE_PORT, ACQUIRER_SECRETS } = process.env
  return [
    '',
    'Ready, with a demo merchant and a demo partner.',
    '',
    '1. Accept a first payment. In a second terminal, as the merchant:',
    '',
    environment({ BASE_URL: base, MID: demo.mid }, demo.merchantKey),
    '',
    '   This key may also refund; other keys may not, unless the operator grants them the right.',
    '   Create a payment intent. The response contains links that open UPI apps, a QR code, and the orderId:',
    '',
    `RESPONSE=$(${curl('/v1/payments/createPaymentIntent', order)}) && echo "$RESPONSE"`,
    '',
    '   Its pay page is /pay/ followed by that orderId. Print the address, and open it in a browser:',
    '',
    `echo "$BASE_URL/pay/$(echo "$RESPONSE" | sed -n 's/.*"orderId":"\\([^"]*\\)".*/\\1/p')"`,
    '',
    '   To see the webhook that notifies the merchant, start a receiver in another terminal, in this folder:',
    '',
    `WEBHOOK_SECRET=${demo.webhook.secret} PORT=${demo.webhook.port} node src/dev/receive-webhooks.mjs`,
    '',
    '   Open "Simulate" on the page and press "Simulate payment". Then check the payment status:',
    '',
    curl('/v1/payments/checkPaymentStatus', { mid: demo.mid, order_id: orderId }),
    '',
    '   createOrderRequest accepts the same fields and returns the address of the pay page as payment_url.',
    '',
    '2. List the settlements that the bank has paid out. In a third terminal, as the partner:',
    '',
    environment({ BASE_URL: base, PID: demo.pid, MID: demo.mid }, demo.partnerKey),
    '',
    curl('/v1/partner/fetchSettlementList', settlements),
    '',
    ...(ACQUIRER_SECRETS
      ? [
          "3. Send payment notifications as the bank. The samples of the acquirer's guide need:",
          '',
          `export BASE_URL=${base}`,
          `export ACQUIRER_SECRET=${ACQUIRER_SECRETS.split(',')[0]}`,
          '',
        ]
      : []),
    'Continue in a browser:',
    '',
    `   ${base}/docs   guides with samples, and the API reference with every operation`,
    `   http://localhost:${OPS_PORT || 3001}   operator dashboard; the operator's guide is at /docs`,
    `   http://localhost:${CONSOLE_PORT || 3002}   operator console: search for payments and refund them. Sign in with`,
    `      user name  ${demo.operatorKey.publicKey}`,
    `      password   ${demo.operatorKey.secretKey}`,
    '',
  ].join('\n')
}

function environment(names: Record<string, string>, { publicKey, secretKey }: Demo['merchantKey']): string {
  const values = Object.entries({ ...names, PUBLIC_KEY: publicKey, SECRET_KEY: secretKey })
  return values.map(([name, value]) => `export ${name}=${value}`).join('\n')
}

/** Formats a curl command. `-w` prints a newline after the response, so that the prompt starts on a new line. */
function curl(path: string, fields: Record<string, string>): string {
  const data = Object.entries(fields).map(([name, value]) => `--data-urlencode '${name}=${value}'`)
  const lines = [`curl -sS -w '\\n' -u "$PUBLIC_KEY:$SECRET_KEY"`, `"$BASE_URL${path}"`, ...data]
  return lines.join(' \\\n  ')
}
