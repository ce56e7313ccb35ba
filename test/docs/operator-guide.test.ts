import { expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { startServerProcess } from '../support/server-process.ts'

it('the operator’s guide is at /docs of the operator’s port, and nowhere on the public port', async () => {
  const { url } = await createTestDatabase()
  const server = await startServerProcess(url, { PUBLIC_URL: 'https://pay.example.in/upi' })
  try {
    const answer = await fetch(`http://127.0.0.1:${server.opsPort}/docs`)
    const text = await answer.text()
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(text).toContain('<h1>For the operator</h1>')
    expect(text).toContain('href="https://pay.example.in/upi/docs"')
    expect((await fetch(`http://127.0.0.1:${server.opsPort}/docs/guide.css`)).status).toBe(200)
    const setu = await (await fetch(`http://127.0.0.1:${server.opsPort}/docs/setu`)).text()
    expect(setu).toContain('https://pay.example.in/upi/acquirer/setu/notification')
    for (const [path, title] of Object.entries({ '/docs.md': 'For the operator', '/docs/setu.md': 'Setu' })) {
      const markdown = await fetch(`http://127.0.0.1:${server.opsPort}${path}`)
      expect(markdown.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
      const written = await markdown.text()
      expect(written).toMatch(new RegExp(`^# ${title}\\n`))
      expect(written).toContain('https://pay.example.in/upi/')
      expect(written).not.toContain('{PUBLIC_URL}')
    }
    for (const path of [
      '/docs/operator',
      '/guides/operator.md',
      '/docs/operator.md',
      '/docs.md',
      '/docs/setu',
      '/docs/setu.md',
    ]) {
      expect((await fetch(`${server.url}${path}`)).status).toBe(404)
    }
    expect(await (await fetch(`${server.url}/docs`)).text()).not.toContain('docs/operator')
  } finally {
    await server.stop()
  }
})
