import type { Demo } from './demo.ts'

const IST_OFFSET_MS = 330 * 60_000

/** Commands to paste into a shell. The same one may be pasted again: it names no order_id. */
export function demoCommands(demo: Demo, now: Date): string {
  const base = (process.env.PUBLIC_URL || `http://localhost:${process.env.PORT || 3000}`).replace(/\/+$/, '')
  const order = {
    mid: demo.mid,
    amount: '200',
    redirect_url: 'https://shop.example/thank-you',
    note: 'Two cups of masala chai',
    customer_name: 'Asha Rao',
    customer_email: 'asha@shop.example',
    customer_mobile: '9876543210',
  }
  const fetchSettlementList = curl(`${base}/v1/partner/fetchSettlementList`, demo.partnerKey, {
    pid: demo.pid,
    mid: demo.mid,
    s_date: istDay(new Date(demo.settledSince)),
    e_date: istDay(now),
  })
  return [
    '',
    'Ready, with a demo merchant and a demo partner. In a second terminal:',
    '',
    'Take a first payment: paste this, and open the payment_url that it answers.',
    '',
    curl(`${base}/v1/payments/createOrderRequest`, demo.merchantKey, order),
    '',
    'Make a payment intent, with UPI links and a QR to show in a page of your own:',
    '',
    curl(`${base}/v1/payments/createPaymentIntent`, demo.merchantKey, order),
    '',
    'List settlements:',
    '',
    fetchSettlementList,
    '',
    `See and try every operation in a browser: ${base}/docs`,
    '',
    'What the samples in README.md need, as the merchant:',
    '',
    environment(base, demo.merchantKey),
    '',
    'and as the partner:',
    '',
    environment(base, demo.partnerKey),
    '',
  ].join('\n')
}

function environment(base: string, { publicKey, secretKey }: Demo['merchantKey']): string {
  return `export BASE_URL=${base} PUBLIC_KEY=${publicKey} SECRET_KEY=${secretKey}`
}

function curl(url: string, key: Demo['merchantKey'], fields: Record<string, string>): string {
  const data = Object.entries(fields).map(([name, value]) => `--data-urlencode '${name}=${value}'`)
  return [`curl -u ${key.publicKey}:${key.secretKey} ${url}`, ...data].join(' \\\n  ')
}

/** dd-mm-yyyy, as the interface writes days, in Indian Standard Time. */
function istDay(time: Date): string {
  const [year, month, day] = new Date(time.getTime() + IST_OFFSET_MS).toISOString().slice(0, 10).split('-')
  return `${day}-${month}-${year}`
}
