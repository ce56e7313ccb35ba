import { deflateSync } from 'node:zlib'
import { PNG_SIGNATURE, pngChunk } from '../../src/platform/png.ts'

export type Chunk = [type: string, data: Buffer]

/** A header (IHDR) of 8-bit RGBA; `rest` are bit depth, colour type, compression, filter and interlacing. */
export function header(width: number, height: number, rest = [8, 6, 0, 0, 0]): Chunk {
  const data = Buffer.alloc(13)
  data.writeUInt32BE(width, 0)
  data.writeUInt32BE(height, 4)
  data.set(rest, 8)
  return ['IHDR', data]
}

/** Compressed pixels (IDAT) of zeros: `rows` rows of `rowBytes` bytes, with the byte of the filter. */
export const pixels = (rows: number, rowBytes: number): Chunk => ['IDAT', deflateSync(Buffer.alloc(rows * rowBytes))]

export const END: Chunk = ['IEND', Buffer.alloc(0)]

export const pngOf = (...chunks: Chunk[]) =>
  Buffer.concat([PNG_SIGNATURE, ...chunks.map((chunk) => pngChunk(...chunk))])

/** A transparent logo of 40 × 40 pixels. `more` are chunks before its pixels. */
export const logoOf = (...more: Chunk[]) => pngOf(header(40, 40), ...more, pixels(40, 161), END)
