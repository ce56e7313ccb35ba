import { randomBytes } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { PNG } from 'pngjs'
import { describe, expect, it } from 'vitest'
import { checkLogo, LogoError } from '../../src/gateway/tenants/logo.ts'
import { END, header, logoOf, pixels, pngOf } from '../support/png.ts'

const GREY = [8, 0, 0, 0, 0]
const PALETTE = [2, 3, 0, 0, 0]

/** The types of a PNG's chunks. */
function typesOf(png: Buffer): string[] {
  const types = []
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) types.push(png.toString('latin1', at + 4, at + 8))
  return types
}

const problemOf = (file: Buffer): string | undefined => {
  try {
    checkLogo(file)
    return undefined
  } catch (error) {
    expect(error).toBeInstanceOf(LogoError)
    return (error as Error).message
  }
}

describe('accepted logos', () => {
  it('retains only the chunks that the pixels need, and an independent decoder reads the same pixels', () => {
    const image = new PNG({ width: 64, height: 48 })
    randomBytes(1024).copy(image.data)
    const drawn = PNG.sync.write(image)
    const [before, after] = [drawn.subarray(0, 33), drawn.subarray(33)]
    const note = pngOf(['tEXt', Buffer.from('Author\0Asha Rao')], ['eXIf', Buffer.from('MM')]).subarray(8)
    const { png, sha256 } = checkLogo(Buffer.concat([before, note, after]))
    expect(typesOf(png)).toEqual(['IHDR', 'IDAT', 'IEND'])
    expect(PNG.sync.read(png).data).toEqual(image.data)
    expect(checkLogo(drawn)).toEqual({ png, sha256 })
    expect(checkLogo(png)).toEqual({ png, sha256 })
  })

  it('retains palette and transparency, and joins pixels in several parts', () => {
    const [type, data] = pixels(40, 11)
    const parts = [data.subarray(0, 5), data.subarray(5)].map((part): [string, Buffer] => [type, part])
    const colours: [string, Buffer][] = [
      ['PLTE', Buffer.from([0, 0, 0, 255, 255, 255])],
      ['tRNS', Buffer.from([0])],
    ]
    const { png } = checkLogo(pngOf(header(40, 40, PALETTE), ...colours, ...parts, END))
    expect(typesOf(png)).toEqual(['IHDR', 'PLTE', 'tRNS', 'IDAT', 'IEND'])
    expect(PNG.sync.read(png).data.subarray(0, 4)).toEqual(Buffer.from([0, 0, 0, 0]))
  })

  it.each([
    ['a logo of 512 × 512 pixels', pngOf(header(512, 512), pixels(512, 2049), END)],
    ['16 bits per channel', pngOf(header(9, 9, [16, 6, 0, 0, 0]), pixels(9, 73), END)],
    ['1 bit per pixel', pngOf(header(9, 9, [1, 0, 0, 0, 0]), pixels(9, 3), END)],
  ])('accepts %s', (_, file) => {
    expect(problemOf(file)).toBeUndefined()
  })

  it('accepts a file of 32 KiB and rejects one byte more', () => {
    const empty = logoOf(['tEXt', Buffer.alloc(0)]).length
    expect(problemOf(logoOf(['tEXt', Buffer.alloc(32_768 - empty)]))).toBeUndefined()
    expect(problemOf(logoOf(['tEXt', Buffer.alloc(32_769 - empty)]))).toBe(
      'is larger than 32 KiB: compress it or reduce its width and height',
    )
  })
})

describe('rejected logos', () => {
  const damaged = (reason: string) => `is damaged, because ${reason}: export it as PNG again`
  const flipped = logoOf()
  flipped[50] = ((flipped[50] as number) + 1) % 256
  const [idat, compressed] = pixels(40, 161)

  it.each([
    ['an empty file', Buffer.alloc(0), 'is empty: export the logo as PNG'],
    ['an SVG', Buffer.from('<?xml version="1.0"?>\n<svg xmlns="…"/>'), 'is an SVG: export the logo as PNG'],
    ['a GIF', Buffer.from('GIF89a\x01\0\x01\0'), 'is a GIF: export the logo as PNG'],
    ['a JPEG', Buffer.from('\xff\xd8\xff\xe0', 'latin1'), 'is a JPEG: export the logo as PNG'],
    ['a WebP image', Buffer.from('RIFF\n\0\0\0WEBPVP8 '), 'is a WebP image: export the logo as PNG'],
    ['another file', Buffer.from('%PDF-1.7'), 'is not a PNG: export the logo as PNG'],
    [
      'a decompression bomb',
      pngOf(header(10_000, 10_000, [1, 0, 0, 0, 0]), pixels(10_000, 1251), END),
      'has 10000 × 10000 pixels: reduce it to at most 512 × 512',
    ],
    [
      '513 pixels',
      pngOf(header(40, 513), pixels(513, 161), END),
      'has 40 × 513 pixels: reduce it to at most 512 × 512',
    ],
    [
      'pixels of a larger image than the header’s',
      pngOf(header(100, 100), pixels(10_000, 401), END),
      damaged('it contains more pixels than its header (IHDR) states'),
    ],
    [
      'fewer pixels than the header’s',
      pngOf(header(40, 40), pixels(39, 161), END),
      damaged('it contains fewer pixels than its header (IHDR) states'),
    ],
    [
      'data after the end',
      Buffer.concat([logoOf(), Buffer.from('PK')]),
      damaged('it contains data after its end (IEND)'),
    ],
    [
      'data after the compressed pixels',
      pngOf(header(40, 40), [idat, Buffer.concat([compressed, Buffer.from('PK')])], END),
      damaged('it contains data after its pixels (IDAT)'),
    ],
    [
      'pixels that are not compressed',
      pngOf(header(40, 40), ['IDAT', Buffer.alloc(40)], END),
      damaged('its pixels (IDAT) cannot be decompressed'),
    ],
    [
      'an unknown filter',
      pngOf(header(1, 1, GREY), ['IDAT', deflateSync(Buffer.from([5, 0]))], END),
      damaged('its pixels (IDAT) contain an unknown filter'),
    ],
    [
      'a palette of grey pixels',
      pngOf(header(40, 40, GREY), ['PLTE', Buffer.alloc(3)], pixels(40, 41), END),
      damaged('its palette (PLTE) has an invalid length'),
    ],
    ...(
      [
        [[8, 0, 0, 0, 0], 3],
        [[8, 2, 0, 0, 0], 7],
        [[8, 6, 0, 0, 0], 1],
      ] as const
    ).map(([rest, length]): [string, Buffer, string] => [
      `${length} bytes of transparency for the header ${rest}`,
      pngOf(header(40, 40, [...rest]), ['tRNS', Buffer.alloc(length)], pixels(40, 161), END),
      damaged('its transparency (tRNS) has an invalid length'),
    ]),
    [
      'transparency of more colours than the palette',
      pngOf(header(40, 40, PALETTE), ['PLTE', Buffer.alloc(6)], ['tRNS', Buffer.alloc(3)], pixels(40, 11), END),
      damaged('its transparency (tRNS) has an invalid length'),
    ],
    ['two headers', logoOf(header(40, 40)), damaged('it contains more than one chunk IHDR')],
    [
      'another chunk before the header',
      pngOf(['tEXt', Buffer.alloc(4)], header(40, 40), pixels(40, 161), END),
      damaged('it does not begin with a valid header (IHDR)'),
    ],
    ['no pixels', pngOf(header(40, 40), END), damaged('its chunks are not in the order of a PNG')],
    [
      'a palette after the pixels',
      pngOf(header(40, 40), pixels(40, 161), ['PLTE', Buffer.alloc(3)], END),
      damaged('its chunks are not in the order of a PNG'),
    ],
    ['no palette', pngOf(header(40, 40, PALETTE), pixels(40, 11), END), damaged('its palette (PLTE) is missing')],
    [
      'more colours than the bit depth allows',
      pngOf(header(40, 40, PALETTE), ['PLTE', Buffer.alloc(15)], pixels(40, 11), END),
      damaged('its palette (PLTE) has an invalid length'),
    ],
    [
      'a chunk that viewers must know',
      logoOf(['ABCD', Buffer.alloc(0)]),
      damaged('it contains the unknown chunk ABCD'),
    ],
    [
      'a chunk without a type',
      logoOf(['\x1b[2J', Buffer.alloc(0)]),
      damaged('it contains a chunk without a valid type'),
    ],
    ['a changed byte', flipped, damaged('the checksum of its chunk IDAT is wrong')],
    ['a file without its end', logoOf().subarray(0, -12), damaged('its end is missing')],
    ['a file that ends inside a chunk', logoOf().subarray(0, -1), damaged('its end is missing')],
    ['only a signature', pngOf(), damaged('its end is missing')],
    ...[
      [3, 6, 0, 0, 0],
      [8, 1, 0, 0, 0],
      [8, 6, 1, 0, 0],
      [8, 6, 0, 1, 0],
    ].map((rest): [string, Buffer, string] => [
      `the header ${rest}`,
      pngOf(header(40, 40, rest), pixels(40, 161), END),
      damaged('its header (IHDR) contains an invalid value'),
    ]),
    ['no width', pngOf(header(0, 40), pixels(40, 1), END), damaged('its header (IHDR) contains an invalid value')],
    [
      'an interlaced image',
      pngOf(header(40, 40, [8, 6, 0, 0, 1]), pixels(40, 161), END),
      'is interlaced: export it as PNG without interlacing',
    ],
  ])('rejects %s', (_, file, problem) => {
    expect(problemOf(file)).toBe(problem)
  })

  it('rejects a logo of which any single byte was changed', () => {
    const logo = logoOf()
    for (let at = 0; at < logo.length; at++) {
      const changed = Buffer.from(logo)
      changed[at] = ((changed[at] as number) + 1) % 256
      expect(problemOf(changed), `byte ${at}`).toBeDefined()
    }
  })
})
