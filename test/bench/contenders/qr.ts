// Draws QR codes of links as an intent has them, and prints how many of each kind one core draws in a second.

import { qrPng, qrSvg } from '../../../src/checkout/qr-image.ts'
import { upiQrLink } from '../../../src/payments/upi-links.ts'

const ROUND_CPU_MICROSECONDS = 1_500_000

const createdAt = new Date('2026-08-15T06:00:00Z')
const expiresAt = new Date('2026-08-15T06:15:00Z')
const payee = { vpa: 'chaipoint@examplebank', name: 'Chai Point', mcc: '5814' }
const links = Array.from({ length: 100 }, (_, i) =>
  upiQrLink({
    orderId: `019aa0b1c2d3e4f5a6b7c8d9e0f1a${100 + i}`,
    amount: 20_000,
    note: 'Order 1001',
    payee,
    createdAt,
    expiresAt,
  }),
)

console.log(JSON.stringify({ png: perCpuSecond(qrPng), svg: perCpuSecond(qrSvg), linkLength: links[0]?.length }))

/** By processor time of the whole process, so that neither a busy machine nor a second core changes it. */
function perCpuSecond(draw: (text: string) => unknown): number {
  for (const link of links) draw(link)
  const before = process.cpuUsage()
  let drawn = 0
  for (;;) {
    for (const link of links) draw(link)
    drawn += links.length
    const { user, system } = process.cpuUsage(before)
    if (user + system > ROUND_CPU_MICROSECONDS) return (drawn / (user + system)) * 1e6
  }
}
