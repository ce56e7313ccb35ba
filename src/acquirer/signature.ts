import { createHmac, timingSafeEqual } from 'node:crypto'

/** How far the time of a signature may be from ours: older ones could be replays, later ones a wrong clock. */
const TOLERANCE_SECONDS = 300

/**
 * Whether `header` (`t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`) signs these very bytes with one of `secrets`,
 * at a time within 5 minutes of `now`. Every secret and every v1 is tried, so that the time taken tells nothing.
 */
export function isSigned(header: unknown, body: Buffer, secrets: readonly string[], now: Date): boolean {
  if (typeof header !== 'string' || header.length > 1_024) return false
  const parts = header.split(',').map((part) => part.trim().split('='))
  const times = parts.filter(([name]) => name === 't').map(([, value]) => value ?? '')
  const [time] = times
  if (time === undefined || times.length > 1 || !/^\d{1,12}$/.test(time)) return false
  if (Math.abs(now.getTime() / 1000 - Number(time)) > TOLERANCE_SECONDS) return false
  const signatures = parts
    .filter(([name, value]) => name === 'v1' && /^[0-9a-f]{64}$/i.test(value ?? ''))
    .map(([, value]) => Buffer.from(value ?? '', 'hex'))
  let signed = false
  for (const secret of secrets) {
    const expected = createHmac('sha256', secret).update(`${time}.`).update(body).digest()
    for (const signature of signatures) signed = timingSafeEqual(expected, signature) || signed
  }
  return signed
}
