import type { Demo } from './demo.ts'

const IST_OFFSET_MS = 330 * 60_000

/** Commands to paste into a shell, one per operation. The same one may be pasted again: it names no order_id. */
export function demoCommands(demo: Demo, now: Date): string {
  const base = (process.env.PUBLIC_URL || `http://localhost:${process.env.PORT || 3000}`).replace(/\/+$/, '')
  const createPaymentIntent = curl(`${base}/v1/payments/createPaymentIntent`, demo.merchantKey, {
    mid: demo.mid,
    amount: '200',
    redirect_url: 'https://shop.example/thank-you',
    note: 'Two cups of masala chai',
    customer_name: 'Asha Rao',
    customer_email: 'asha@shop.example',
    customer_mobile: '9876543210',
  })
  const fetchSettlementList = curl(`${base}/v1/partner/fetchSettlementList`, demo.partnerKey, {
    pid: demo.pid,
    mid: demo.mid,
    s_date: istDay(new Date(demo.settledSince)),
    e_date: istDay(now),
  })
  return [
    '',
    'Ready, with a demo merchant and a demo partner. Paste this to make a payment intent:',
    '',
    createPaymentIntent,
    '',
    'and this to list settlements:',
    '',
    fetchSettlementList,
    '',
  ].join('\n')
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
