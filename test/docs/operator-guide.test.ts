import { fastify } from 'fastify'
import { expect, it } from 'vitest'
import { chaptersOf } from '../../src/docs/chapters.ts'
import { operatorGuideRoutes } from '../../src/docs/routes.ts'
import { chapterText, GUIDES } from '../guides/guides.ts'
import { PUBLIC_URL, startService } from '../support/service.ts'

const OPERATOR_GUIDES = GUIDES.filter((guide) => !['merchant', 'partner', 'plugins', 'acquirer'].includes(guide))
const CHAPTERS = OPERATOR_GUIDES.flatMap(chaptersOf)

const opsApp = fastify()
operatorGuideRoutes(opsApp, { publicUrl: PUBLIC_URL })

it('the operator’s port serves the operator’s chapters as HTML and as Markdown', async () => {
  expect(OPERATOR_GUIDES).toEqual(expect.arrayContaining(['operator', 'acquirers']))
  for (const chapter of CHAPTERS) {
    const { headers, payload } = await opsApp.inject(`/docs/${chapter}`)
    expect(headers, chapter).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
    })
    const [title = ''] = chapterText(chapter).split('\n')
    expect(payload).toContain(
      `<h1>${title
        .slice('# '.length)
        .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
        .replaceAll("'", '&#39;')}</h1>`,
    )
    expect(payload).not.toMatch(/(?:\{|%7B)PUBLIC_URL/)
    const markdown = await opsApp.inject(`/docs/${chapter}.md`)
    expect(markdown.headers['content-type']).toBe('text/markdown; charset=utf-8')
    expect(markdown.payload).toBe(chapterText(chapter).replaceAll('{PUBLIC_URL}', PUBLIC_URL))
  }
  expect((await opsApp.inject('/docs/acquirers/setu')).payload).toContain(`${PUBLIC_URL}/acquirer/setu/notification`)
})

it('/docs on the operator’s port lists the operator’s chapters, and links to the public documentation and the start page', async () => {
  const { headers, payload } = await opsApp.inject('/docs')
  expect(headers['content-security-policy']).toContain("default-src 'none'")
  for (const chapter of CHAPTERS) expect(payload).toContain(`href="docs/${chapter}"`)
  expect(payload).toContain(`href="${PUBLIC_URL}/docs"`)
  expect(payload).toContain('<a href="./">Start page</a>')
  const list = (await opsApp.inject('/llms.txt')).payload
  for (const chapter of CHAPTERS) expect(list).toContain(`(/docs/${chapter}.md)`)
  for (const asset of ['guide.css', 'guide.js', 'search.js', 'minisearch.js', 'search.json'])
    expect((await opsApp.inject(`/docs/${asset}`)).statusCode, asset).toBe(200)
})

it('the operator’s port redirects the address of a guide to its first chapter', async () => {
  const target = chaptersOf('operator')[0]
  for (const ending of ['', '.md']) {
    const { statusCode, headers } = await opsApp.inject(`/docs/operator${ending}`)
    expect([statusCode, headers.location]).toEqual([308, `${target}${ending}`])
  }
})

it('the public port serves no operator documentation', async () => {
  const { app } = await startService()
  for (const path of ['operator', 'acquirers', ...CHAPTERS])
    for (const ending of ['', '.md']) expect((await app.inject(`/docs/${path}${ending}`)).statusCode, path).toBe(404)
  for (const path of ['/docs', '/llms.txt', '/docs/search.json'])
    expect((await app.inject(path)).payload, path).not.toMatch(/operator\//)
})
