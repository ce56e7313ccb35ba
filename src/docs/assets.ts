import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { COLOURS } from '../colours.ts'

/** A file to send, plain and compressed; by `etag` a browser knows whether it has it already. */
export type Asset = { type: string; plain: Buffer; gzipped: Buffer; etag: string }

const TYPES = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' }

/** Reads a file of the pages below /docs: one of ours, or the library's script, which a build has laid beside ours. */
export async function readAsset(name: string): Promise<Asset> {
  const ours = new URL(`./ui/${name}`, import.meta.url)
  const file = existsSync(ours) ? ours : createRequire(import.meta.url).resolve(`openapi-explorer/dist/browser/${name}`)
  const text = await readFile(file)
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1) as keyof typeof TYPES]
  return toAsset(type, name === 'guide.css' ? COLOURS + text : text)
}

/** The guide `name` as HTML: from the file that a build made, or rendered here, in a checkout. */
export async function readGuide(name: string): Promise<string> {
  const built = new URL(`./guides/${name}.html`, import.meta.url)
  if (existsSync(built)) return readFile(built, 'utf8')
  // A build leaves this module out, and the Markdown library with it.
  const { renderGuide } = await import('./render-guide.ts')
  return renderGuide(await readFile(new URL(`./guides/${name}.md`, import.meta.url), 'utf8'))
}

export async function toAsset(type: string, content: Buffer | string): Promise<Asset> {
  const plain = Buffer.from(content)
  // Asynchronous, hence in a thread of its own: the library's 750 kB take tens of milliseconds.
  const gzipped = await promisify(gzip)(plain)
  return { type, plain, gzipped, etag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"` }
}
