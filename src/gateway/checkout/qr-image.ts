import { deflateSync } from 'node:zlib'
import encodeQr from 'qr'
import { PNG_SIGNATURE, pngChunk } from '../../platform/png.ts'

/** Width of the blank border in modules; ISO/IEC 18004 requires 4. */
const QUIET_ZONE = 4
/** Width of a module in pixels. The QR of a typical link is about 550 pixels wide. */
const SCALE = 8

/** A QR as SVG, sharp at any size, in black on its own white background, so that a dark page does not affect it. */
export function qrSvg(text: string): string {
  const modules = drawModules(text)
  const size = modules.length
  let path = ''
  modules.forEach((row, y) => {
    for (let x = 0; x < size; x++) {
      if (!row[x]) continue
      const start = x
      while (row[x + 1]) x++
      const width = x + 1 - start
      path += `M${start} ${y}h${width}v1h-${width}z`
    }
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path}"/></svg>`
}

/** A QR as PNG with one bit per pixel, about 1.8 kB. The format follows W3C, PNG, third edition. */
export function qrPng(text: string): Buffer {
  const modules = drawModules(text)
  const width = modules.length * SCALE
  const rowBytes = 1 + Math.ceil(width / 8)
  // The first byte of each row is its filter. Filter 2 stores the difference from the row above: zeros for a repeated
  // row.
  const rows = Buffer.alloc(rowBytes * width)
  modules.forEach((row, y) => {
    const at = y * SCALE * rowBytes
    for (let x = 0; x < width; x++) {
      const byte = at + 1 + (x >> 3)
      if (!row[Math.floor(x / SCALE)]) rows[byte] = (rows[byte] ?? 0) | (0x80 >> (x & 7))
    }
    for (let copy = 1; copy < SCALE; copy++) rows[at + copy * rowBytes] = 2
  })
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(width, 4)
  header[8] = 1
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk('IHDR', header),
    // Level 1 is faster than the default and makes the PNG 500 bytes larger.
    pngChunk('IDAT', deflateSync(rows, { level: 1 })),
    pngChunk('IEND', Buffer.alloc(0)),
  ])
}

/** The modules of a QR, true for black. Medium error correction allows for 15 % unreadable modules. */
const drawModules = (text: string): boolean[][] => encodeQr(text, 'raw', { ecc: 'medium', border: QUIET_ZONE })
