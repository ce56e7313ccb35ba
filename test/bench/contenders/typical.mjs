// createPaymentIntent as a competent developer writes it first: Fastify because it is the quicker of the usual two, zod,
// a query for the key and an insert for every request, a pool of 10, one log line a request. The schema is ours.
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
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

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const istText = new Intl.DateTimeFormat('sv-SE', {
  timeZone: 'Asia/Kolkata',
  dateStyle: 'short',
  timeStyle: 'medium',
})

const log = pino({ level: 'info' })
const app = fastify()
await app.register(formBody)
app.addHook('onResponse', async (request, reply) => {
  const { id, method, url } = request
  log.info({ id, method, url, status: reply.statusCode, durationMs: reply.elapsedTime }, 'request')
})

app.get('/livez', async () => ({ status: true, statusCode: 200 }))

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
         (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name, customer_email, customer_mobile,
          payee_vpa, payee_name, payee_mcc, created_at, expires_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
      [
        merchant.mid,
        orderId,
        body.order_id ?? orderId,
        body.amount,
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

  const query = upiQuery({ pa: merchant.vpa, pn: merchant.name, mc: merchant.mcc, tr: orderId, tn: body.note, body })
  return {
    status: true,
    statusCode: 200,
    msg: 'Payment intent created successfully',
    data: {
      intent: `upi://pay?${query}`,
      phonepe: `phonepe://upi/pay?${query}`,
      paytm: `paytmmp://upi/pay?${query}`,
      gpay: `tez://upi/pay?${query}`,
      dynamicQR: `${process.env.PUBLIC_URL}/pay/${orderId}/qr.png`,
      expiry: istText.format(expiresAt),
      amount: String(body.amount),
      orderId,
    },
  }
})

await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })

async function authenticate(request, reply) {
  const [scheme, credentials = ''] = (request.headers.authorization ?? '').split(' ')
  const [publicKey, secret = ''] = Buffer.from(credentials, 'base64').toString().split(':')
  if (scheme !== 'Basic') return fail(reply, 401, 'Unauthorized')
  const { rows } = await pool.query(
    `select k.secret_hash, m.mid, m.name, m.vpa, m.mcc
       from access_keys k
       join merchants m on m.mid = k.mid
      where k.public_key = $1 and k.revoked_at is null`,
    [publicKey],
  )
  const hash = createHash('sha256').update(secret).digest()
  if (!rows[0] || !timingSafeEqual(hash, rows[0].secret_hash)) return fail(reply, 401, 'Unauthorized')
  request.merchant = rows[0]
}

function fail(reply, statusCode, msg) {
  return reply.code(statusCode).send({ status: false, statusCode, msg })
}

function upiQuery({ body, ...payee }) {
  const parameters = { ver: '01', mode: '04', ...payee, am: body.amount.toFixed(2), cu: 'INR', qrMedium: '02' }
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')
}
