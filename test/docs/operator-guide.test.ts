import { fastify } from 'fastify'
import { expect, it } from 'vitest'
import { operatorGuideRoutes } from '../../src/docs/routes.ts'
import { PUBLIC_URL, startService } from '../support/service.ts'

it('serves the operator’s guide at /docs of the operator’s port, and nowhere on the public port', async () => {
  const opsApp = fastify()
  operatorGuideRoutes(opsApp, { publicUrl: PUBLIC_URL })
  const { headers, payload } = await opsApp.inject('/docs')
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': expect.stringContaining("default-src 'none'"),
  })
  expect(payload).toContain('<h1>For the operator</h1>')
  expect(payload).toContain(`href="${PUBLIC_URL}/docs"`)
  expect((await opsApp.inject('/docs/guide.css')).statusCode).toBe(200)
  expect((await opsApp.inject('/docs/setu')).payload).toContain(`${PUBLIC_URL}/acquirer/setu/notification`)
  for (const [path, title] of Object.entries({ '/docs.md': 'For the operator', '/docs/setu.md': 'Setu' })) {
    const markdown = await opsApp.inject(path)
    expect(markdown.headers['content-type']).toBe('text/markdown; charset=utf-8')
    expect(markdown.payload).toMatch(new RegExp(`^# ${title}\\n`))
    expect(markdown.payload).toContain(`${PUBLIC_URL}/`)
    expect(markdown.payload).not.toContain('{PUBLIC_URL}')
  }
  const { app } = await startService()
  for (const path of [
    '/docs/operator',
    '/guides/operator.md',
    '/docs/operator.md',
    '/docs.md',
    '/docs/setu',
    '/docs/setu.md',
  ]) {
    expect((await app.inject(path)).statusCode).toBe(404)
  }
  expect((await app.inject('/docs')).payload).not.toContain('docs/operator')
})
