import { fastify } from 'fastify'
import { expect, it } from 'vitest'
import { operatorIndexRoute, operatorsOnly } from '../../src/operator/monitoring/operator-port.ts'

const app = fastify()
operatorsOnly(app, { password: undefined, allowedHosts: [] })
operatorIndexRoute(app, { publicUrl: 'https://pay.example.in/upi' })

it('the operator port links to the manual, the metrics, the API guides and the console’s chapter', async () => {
  const { statusCode, body } = await app.inject('/')
  expect(statusCode).toBe(200)
  const links = [...body.matchAll(/<li><a href="([^"]+)"|<a href="(docs\/[^"]+)"/g)].map(
    ([, item, other]) => item ?? other,
  )
  expect(links).toEqual(['docs', 'metrics', 'https://pay.example.in/upi/docs', 'docs/operator/console'])
  expect(body).toContain('<code>ops console</code>')
})

it('the operator port’s page has no inline script or style, loads nothing from other origins, and is not cached', async () => {
  const { headers, body } = await app.inject('/')
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; style-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  })
  expect(body).not.toMatch(/<script|<style| style=| on\w+=|<form|<iframe|http-equiv/)
})

it('the operator port rejects other machines and other Hosts with 403 and instructions', async () => {
  const errors = [
    await app.inject({ url: '/', remoteAddress: '172.18.0.9', headers: { accept: 'text/html' } }),
    await app.inject({ url: '/', headers: { host: 'rebind.evil.example:3001', accept: 'text/html' } }),
  ]
  for (const { statusCode, body } of errors) {
    expect(statusCode).toBe(403)
    expect(body).toContain(
      'open an SSH tunnel such as ssh -L 3001:127.0.0.1:3001, or set OPS_PASSWORD or OPS_ALLOWED_HOSTS',
    )
    expect(body).not.toContain('metrics')
  }
})
