// The reference: the most frequent calls as a competent developer writes them first. It uses Fastify, the faster of
// the two common servers, zod, a query for the key and one for the rows of each request, a pool of 10 connections and
// one log line a request, on the service's schema. Its responses and webhooks are the service's, byte by byte.
import { createHash, createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import formBody from '@fastify/formbody'
import fastify from 'fastify'
import pg from 'pg'
import { pino } from 'pino'
import { z } from 'zod'

const UNIQUE_VIOLATION = '23505'
const EXPIRY_MS = 15 * 60_000

const CreatePaymentIntent = z.object({
  mid: z.string().min(1).max(64),
  amount: z.coerce.number().int().min(1).max(100_000),
  order_id: z.string().min(1).max(64).optional(),
  redirect_url: z.url().max(2048),
  note: z.string().min(1).max(255),
  customer_name: z.string().min(1).max(100),
  customer_email: z.email(),
  customer_mobile: z.string().regex(/^\d{10}$/),
})

const WhichPayment = z.object({ mid: z.string().min(1).max(64), order_id: z.string().min(1).max(64) })

const day = z.string().regex(/^\d{2}-\d{2}-\d{4}$/)
const WhichSettlements = z.object({
  pid: z.string().min(1).max(64),
  mid: z.string().min(1).max(64),
  s_date: day,
  e_date: day,
})

const Notification = z.object({
  orderId: z.string().min(1).max(64),
  status: z.enum(['SUCCESS', 'FAIL', 'REJECT']),
  UTR: z.string().regex(/^[A-Za-z0-9]{1,35}$/),
  amount: z.coerce.number().positive(),
  paidAt: z.iso.datetime({ offset: true }),
})

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const istText = new Intl.DateTimeFormat('sv-SE', {
  timeZone: 'Asia/Kolkata',
  dateStyle: 'short',
  timeStyle: 'medium',
})

const log = pino({ level: 'info' })
const app = fastify({ genReqId: () => randomUUID(), keepAliveTimeout: 75_000 })
await app.register(formBody)
app.removeContentTypeParser('application/json')
app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
  request.rawBody = body
  done(null, JSON.parse(body))
})
app.addHook('onRequest', async (request, reply) => {
  reply.header('x-request-id', request.id).header('cache-control', 'no-store')
})
app.addHook('onResponse', async (request, reply) => {
  const { id, method, url } = request
  log.info({ id, method, url, status: reply.statusCode, durationMs: reply.elapsedTime }, 'request')
})

app.get('/ready', async () => ({}))

app.post('/v1/payments/createPaymentIntent', { preHandler: authenticate }, async (request, reply) => {
  const parsed = CreatePaymentIntent.safeParse(request.body)
  if (!parsed.success) return fail(reply, 400, z.prettifyError(parsed.error))
  const { merchant } = request
  const body = parsed.data
  if (body.mid !== merchant.mid) return fail(reply, 403, 'Forbidden')

  const orderId = randomUUID().replaceAll('-', '')
  const createdAt = new Date()
  const expiresAt = new Date(createdAt.getTime() + EXPIRY_MS)
  try {
    await pool.query(
      `insert into payment_intents
         (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email, customer_mobile,
          payee_vpa, payee_name, payee_mcc, created_at, expires_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
      [
        merchant.mid,
        orderId,
        body.order_id ?? orderId,
        body.amount * 100,
        body.redirect_url,
        body.note,
        body.customer_name,
        body.customer_email,
        body.customer_mobile,
        merchant.vpa,
        merchant.name,
        merchant.mcc,
        createdAt,
        expiresAt,
      ],
    )
  } catch (error) {
    if (error.code === UNIQUE_VIOLATION) return fail(reply, 409, 'Order ID already exists')
    throw error
  }

  const query = upiQuery({ merchant, orderId, body, expiresAt })
  return {
    status: true,
    statusCode: 200,
    msg: 'Payment intent created successfully',
    data: {
      intent: `upi://pay?${query}`,
      phonepe: `phonepe://pay?${query}`,
      paytm: `paytmmp://pay?${query}`,
      gpay: `tez://upi/pay?${query}`,
      dynamicQR: `${process.env.PUBLIC_URL}/pay/${orderId}/qr.png`,
      expiry: istText.format(expiresAt),
      amount: String(body.amount),
      orderId,
    },
  }
})

app.post('/v1/payments/checkPaymentStatus', { preHandler: authenticate }, async (request, reply) => {
  const parsed = WhichPayment.safeParse(request.body)
  if (!parsed.success) return fail(reply, 400, z.prettifyError(parsed.error))
  const { mid, order_id } = parsed.data
  if (mid !== request.merchant.mid) return fail(reply, 403, 'Forbidden')
  const { rows } = await pool.query(
    `select amount_paise, status, utr, expires_at
       from payment_intents
      where mid = $1 and (merchant_order_id = $2 or order_id = $2)`,
    [mid, order_id],
  )
  if (!rows[0]) return fail(reply, 404, 'Order not found')
  const { amount_paise, status, utr, expires_at } = rows[0]
  if (status === 'PENDING' && expires_at > new Date()) {
    return { status: false, statusCode: 200, txnStatus: 'PENDING', msg: 'Payment pending' }
  }
  const txnStatus = status === 'PENDING' ? 'FAIL' : status
  const data = { amount: amount_paise / 100, UTR: utr ?? '', order_id }
  const msg = txnStatus === 'SUCCESS' ? 'Payment successful' : 'Payment failed'
  return { status: true, statusCode: 200, txnStatus, msg, data }
})

app.post('/v1/partner/fetchSettlementList', { preHandler: authenticatePartner }, async (request, reply) => {
  const parsed = WhichSettlements.safeParse(request.body)
  if (!parsed.success) return fail(reply, 400, z.prettifyError(parsed.error))
  const { pid, mid, s_date, e_date } = parsed.data
  if (pid !== request.pid) return fail(reply, 403, 'Forbidden')
  const links = await pool.query('select 1 from partner_merchants where pid = $1 and mid = $2', [pid, mid])
  if (links.rowCount === 0) return fail(reply, 403, 'Forbidden')
  const { rows } = await pool.query(
    `select amount_paise * 0.01 as amount, utr as "UTR", bank_reference_number as "bankReferenceNumber", status, mid as merchant_id,
            initiated_at as "initiationDate", created_at
       from settlements
      where mid = $1 and initiated_at >= $2 and initiated_at < $3::timestamptz + interval '1 day'
      order by initiated_at, utr`,
    [mid, startOfDay(s_date), startOfDay(e_date)],
  )
  return { status: true, statusCode: 200, msg: 'Settlements found', data: rows }
})

app.post('/acquirer/paymentNotification', async (request, reply) => {
  const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(request.headers['x-signature'] ?? '') ?? []
  const expected = createHmac('sha256', process.env.SECRET).update(`${t}.${request.rawBody}`).digest()
  const isFresh = Math.abs(Date.now() / 1000 - Number(t)) <= 300
  if (!v1 || !isFresh || !timingSafeEqual(expected, Buffer.from(v1, 'hex'))) return fail(reply, 401, 'Unauthorized')
  const parsed = Notification.safeParse(request.body)
  if (!parsed.success) return fail(reply, 400, z.prettifyError(parsed.error))
  const { orderId, status, UTR, amount, paidAt } = parsed.data
  const client = await pool.connect()
  let paid
  try {
    await client.query('begin')
    const { rows } = await client.query(
      'select mid, merchant_order_id, amount_paise, status from payment_intents where order_id = $1 for update',
      [orderId],
    )
    if (!rows[0] || Number(rows[0].amount_paise) !== Math.round(amount * 100)) {
      await client.query('rollback')
      return fail(reply, 409, 'Order differs')
    }
    if (rows[0].status !== 'SUCCESS') {
      await client.query('update payment_intents set status = $2, utr = $3 where order_id = $1', [orderId, status, UTR])
      await client.query(
        `insert into payments (mid, order_id, utr, paid_at, amount_paise, received_at, kind, acquirer, source)
         values ($1, $2, $3, $4, $5, now(), 'first', 'direct', 'notification')`,
        [rows[0].mid, orderId, UTR, paidAt, rows[0].amount_paise],
      )
      const { mid, merchant_order_id: order_id } = rows[0]
      paid = { mid, orderId, order_id, txnStatus: status, amount: String(amount), UTR, sequence: 1 }
    }
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
  if (paid) sendWebhooks(paid).catch((error) => log.error(error))
  return { status: true, statusCode: 200, msg: 'Notification recorded', data: {} }
})

/**
 * Sends webhooks from memory after the commit, so that a failed delivery, or one that a restart interrupts, is lost.
 */
async function sendWebhooks(data) {
  const { mid, orderId, sequence } = data
  const { rows } = await pool.query(
    'select url, secret from webhook_endpoints where mid = $1 and disabled_at is null',
    [mid],
  )
  const now = new Date()
  const body = JSON.stringify({ type: 'payment.succeeded', timestamp: now.toISOString(), data })
  const id = `msg_${orderId}_${sequence}`
  const timestamp = String(Math.floor(now.getTime() / 1000))
  for (const { url, secret } of rows) {
    const signature = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    }
    const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(15_000) })
    await response.arrayBuffer()
    log.info({ mid, url, status: response.status }, 'webhook')
  }
}

await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })

function credentialsOf(request) {
  const [scheme, credentials = ''] = (request.headers.authorization ?? '').split(' ')
  const [publicKey, secret = ''] = Buffer.from(credentials, 'base64').toString().split(':')
  return { publicKey: scheme === 'Basic' ? publicKey : '', hash: createHash('sha256').update(secret).digest() }
}

async function authenticatePartner(request, reply) {
  const { publicKey, hash } = credentialsOf(request)
  const { rows } = await pool.query(
    'select secret_hash, pid from access_keys where public_key = $1 and pid is not null and revoked_at is null',
    [publicKey],
  )
  if (!rows[0] || !timingSafeEqual(hash, rows[0].secret_hash)) return fail(reply, 401, 'Unauthorized')
  request.pid = rows[0].pid
}

/** Midnight in India of a day in `dd-mm-yyyy`. */
function startOfDay(text) {
  const [day, month, year] = text.split('-')
  return new Date(`${year}-${month}-${day}T00:00:00+05:30`)
}

async function authenticate(request, reply) {
  const { publicKey, hash } = credentialsOf(request)
  const { rows } = await pool.query(
    `select k.secret_hash, m.mid, m.name, m.vpa, m.mcc
       from access_keys k
       join merchants m on m.mid = k.mid
      where k.public_key = $1 and k.revoked_at is null`,
    [publicKey],
  )
  if (!rows[0] || !timingSafeEqual(hash, rows[0].secret_hash)) return fail(reply, 401, 'Unauthorized')
  request.merchant = rows[0]
}

function fail(reply, statusCode, msg) {
  return reply.code(statusCode).send({ status: false, statusCode, msg })
}

function upiQuery({ merchant, orderId, body, expiresAt }) {
  const parameters = {
    ver: '01',
    mode: '04',
    pa: merchant.vpa,
    pn: merchant.name,
    mc: merchant.mcc,
    tr: orderId,
    tn: body.note,
    am: body.amount.toFixed(2),
    cu: 'INR',
    QRexpire: `${istText.format(expiresAt).replace(' ', 'T')}+05:30`,
  }
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${encodeURIComponent(value).replace('%40', '@')}`)
    .join('&')
}
