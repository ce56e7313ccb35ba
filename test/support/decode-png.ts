import { createRequire } from 'node:module'
import { PNG } from 'pngjs'

// The types of jsqr describe its CommonJS module as an ES module.
const jsQR = createRequire(import.meta.url)('jsqr') as typeof import('jsqr').default

/** Decodes a PNG with libraries other than those that drew it. */
export function decodePng(bytes: Buffer): string | undefined {
  const { data, width, height } = PNG.sync.read(bytes)
  return jsQR(new Uint8ClampedArray(data), width, height)?.data
}
