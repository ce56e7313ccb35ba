import { createHash } from 'node:crypto'
import { crc32, type Inflate, inflateSync } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import type { Limits } from '../../limits.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { PNG_SIGNATURE, pngChunk } from '../../platform/png.ts'

export const LOGO_LIMITS = { bytes: 32 * 1024, pixels: 512 }

/** The checked bytes of a logo, and their SHA-256 in hex. */
export type Logo = { png: Buffer; sha256: string }

/** Why a file is not accepted as a logo, and what to do: `has 600 × 40 pixels: reduce it to at most 512 × 512`. */
export class LogoError extends Error {}

/**
 * Checks a PNG and returns it with nothing but the chunks that its pixels need. Throws a LogoError for any other file.
 * Reads the dimensions from the header before it decompresses the pixels, and decompresses no more bytes than those
 * dimensions need. Node.js's zlib has this limit, so no image library reads bytes that the operator received from a
 * merchant.
 */
export function checkLogo(file: Buffer): Logo {
  const { bytes, pixels } = LOGO_LIMITS
  if (file.length > bytes) {
    throw new LogoError(`is larger than ${bytes / 1024} KiB: compress it or reduce its width and height`)
  }
  if (!file.subarray(0, 8).equals(PNG_SIGNATURE)) throw new LogoError(`${formatOf(file)}: export the logo as PNG`)
  const chunks = readChunks(file)
  const header = readHeader(chunks)
  if (header.width > pixels || header.height > pixels) {
    throw new LogoError(`has ${header.width} × ${header.height} pixels: reduce it to at most ${pixels} × ${pixels}`)
  }
  checkPalette(chunks, header)
  const data = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map((chunk) => chunk.data))
  checkPixels(data, header)
  const needed = [
    ...chunks.filter(({ type }) => ['IHDR', 'PLTE', 'tRNS'].includes(type)),
    { type: 'IDAT', data },
    { type: 'IEND', data: Buffer.alloc(0) },
  ]
  const png = Buffer.concat([PNG_SIGNATURE, ...needed.map((chunk) => pngChunk(chunk.type, chunk.data))])
  return { png, sha256: createHash('sha256').update(png).digest('hex') }
}

type Chunk = { type: string; data: Buffer }
type Header = { width: number; height: number; bitDepth: number; colourType: number }

const NEEDED = ['IHDR', 'PLTE', 'tRNS', 'IDAT', 'IEND']

/** Bit depths and number of channels of each colour type. */
const COLOUR_TYPES: Readonly<Record<number, { channels: number; bitDepths: readonly number[] }>> = {
  0: { channels: 1, bitDepths: [1, 2, 4, 8, 16] },
  2: { channels: 3, bitDepths: [8, 16] },
  3: { channels: 1, bitDepths: [1, 2, 4, 8] },
  4: { channels: 2, bitDepths: [8, 16] },
  6: { channels: 4, bitDepths: [8, 16] },
}
const PALETTE = 3

/** A row of pixels begins with the number of its filter. */
const FILTERS = 5

const damaged = (reason: string) => new LogoError(`is damaged, because ${reason}: export it as PNG again`)

/** What the file is instead of a PNG. */
function formatOf(file: Buffer): string {
  const start = file.subarray(0, 512).toString('latin1')
  if (file.length === 0) return 'is empty'
  if (/^GIF8/.test(start)) return 'is a GIF'
  if (/^\xff\xd8\xff/.test(start)) return 'is a JPEG'
  if (/^RIFF.{4}WEBP/s.test(start)) return 'is a WebP image'
  return /<svg[\s>]/i.test(start) ? 'is an SVG' : 'is not a PNG'
}

/** The chunks from IHDR to IEND, which must be the last bytes. */
function readChunks(file: Buffer): Chunk[] {
  const chunks: Chunk[] = []
  for (let at = PNG_SIGNATURE.length; at < file.length; ) {
    const start = at + 8
    const end = file.length >= start ? start + file.readUInt32BE(at) : Infinity
    if (end + 4 > file.length) throw damaged('its end is missing')
    const type = file.toString('latin1', at + 4, start)
    if (!/^[A-Za-z]{4}$/.test(type)) throw damaged('it contains a chunk without a valid type')
    if (crc32(file.subarray(at + 4, end)) !== file.readUInt32BE(end)) {
      throw damaged(`the checksum of its chunk ${type} is wrong`)
    }
    chunks.push({ type, data: file.subarray(start, end) })
    at = end + 4
    if (type === 'IEND' && at < file.length) throw damaged('it contains data after its end (IEND)')
  }
  if (chunks.at(-1)?.type !== 'IEND') throw damaged('its end is missing')
  const repeated = ['IHDR', 'PLTE', 'tRNS'].find((name) => chunks.filter(({ type }) => type === name).length > 1)
  if (repeated) throw damaged(`it contains more than one chunk ${repeated}`)
  // A capital letter marks a chunk without which the image cannot be shown.
  const unknown = chunks.find(({ type }) => /^[A-Z]/.test(type) && !NEEDED.includes(type))
  if (unknown) throw damaged(`it contains the unknown chunk ${unknown.type}`)
  const order = chunks.map(({ type }) => type).filter((type) => NEEDED.includes(type))
  if (!/^IHDR (?:PLTE )?(?:tRNS )?(?:IDAT )+IEND$/.test(order.join(' '))) {
    throw damaged('its chunks are not in the order of a PNG')
  }
  return chunks
}

function readHeader([header]: Chunk[]): Header {
  if (header?.type !== 'IHDR' || header.data.length !== 13)
    throw damaged('it does not begin with a valid header (IHDR)')
  const [bitDepth = 0, colourType = 0, compression, filter, interlace = 0] = header.data.subarray(8)
  const [width, height] = [header.data.readUInt32BE(0), header.data.readUInt32BE(4)]
  const isKnown = compression === 0 && filter === 0 && COLOUR_TYPES[colourType]?.bitDepths.includes(bitDepth)
  if (!isKnown || width === 0 || height === 0) throw damaged('its header (IHDR) contains an invalid value')
  if (interlace !== 0) throw new LogoError('is interlaced: export it as PNG without interlacing')
  return { width, height, bitDepth, colourType }
}

/** Checks the lengths of the palette and of the transparent colours, whose rest could hide anything. */
function checkPalette(chunks: Chunk[], { colourType, bitDepth }: Header): void {
  const lengthOf = (name: string) => chunks.find(({ type }) => type === name)?.data.length ?? 0
  const colours = lengthOf('PLTE') / 3
  const mostColours = { 0: 0, 2: 256, 3: 2 ** bitDepth, 4: 0, 6: 256 }[colourType] ?? 0
  if (colourType === PALETTE && colours === 0) throw damaged('its palette (PLTE) is missing')
  if (!Number.isInteger(colours) || colours > mostColours) throw damaged('its palette (PLTE) has an invalid length')
  const mostTransparency = { 0: 2, 2: 6, 3: colours }[colourType] ?? 0
  if (lengthOf('tRNS') > mostTransparency) throw damaged('its transparency (tRNS) has an invalid length')
}

/** Decompresses the pixels and compares their number of bytes with the header. */
function checkPixels(data: Buffer, { width, height, bitDepth, colourType }: Header): void {
  const channels = COLOUR_TYPES[colourType]?.channels ?? 0
  const rowBytes = 1 + Math.ceil((width * channels * bitDepth) / 8)
  const size = rowBytes * height
  const { buffer, engine } = inflate(data, size)
  if (buffer.length !== size) throw damaged('it contains fewer pixels than its header (IHDR) states')
  // zlib ignores bytes after the compressed data, in which a file could hide anything.
  if (engine.bytesWritten !== data.length) throw damaged('it contains data after its pixels (IDAT)')
  for (let at = 0; at < size; at += rowBytes) {
    if ((buffer[at] ?? 0) >= FILTERS) throw damaged('its pixels (IDAT) contain an unknown filter')
  }
}

function inflate(data: Buffer, size: number): { buffer: Buffer; engine: Inflate } {
  try {
    // The types of Node.js omit the result of `info`.
    return inflateSync(data, { maxOutputLength: size, info: true }) as unknown as { buffer: Buffer; engine: Inflate }
  } catch (error) {
    const isLarger = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    throw damaged(
      isLarger ? 'it contains more pixels than its header (IHDR) states' : 'its pixels (IDAT) cannot be decompressed',
    )
  }
}

/** Returns the PNG of a merchant's logo by its hash; undefined if the merchant has another logo or none. */
export type FindLogo = (mid: string, sha256: string) => Promise<Buffer | undefined>

const FIND_LOGO = query<{ png: Buffer }, { mid: string; sha256: string }>(
  'select png from merchant_logos where mid = :mid and sha256 = :sha256',
)

/** Caches logos, because every customer's browser requests the same few. A hash names the same bytes for ever. */
export function createLogoFinder(db: Queryable, { logosBytes }: Pick<Limits['pages'], 'logosBytes'>): FindLogo {
  const logos = new LRUCache<string, Buffer, { mid: string }>({
    maxSize: logosBytes,
    sizeCalculation: (png) => png.length,
    ignoreFetchAbort: true,
    async fetchMethod(sha256, _stale, { context: { mid } }) {
      return (await FIND_LOGO(db, { mid, sha256 }))[0]?.png
    },
  })
  return (mid, sha256) => logos.fetch(sha256, { context: { mid } })
}

/**
 * Stores the logo of a merchant, or deletes it if `logo` is null. The caller changes the hash of the merchant in the
 * same transaction.
 */
export const saveLogo = (db: Queryable, mid: string, logo: Logo | null): Promise<object[]> =>
  logo === null ? DELETE_LOGO(db, { mid }) : SAVE_LOGO(db, { mid, ...logo })

const DELETE_LOGO = query<object, { mid: string }>('delete from merchant_logos where mid = :mid')

const SAVE_LOGO = query<object, Logo & { mid: string }>(`
  insert into merchant_logos (mid, sha256, png)
  values (:mid, :sha256, :png)
      on conflict (mid) do update set sha256 = excluded.sha256, png = excluded.png`)
