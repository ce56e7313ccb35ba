import { deflateSync } from 'node:zlib'
import { PNG_SIGNATURE, pngChunk } from '../platform/png.ts'

/** Width and height in pixels: three per CSS pixel of the pay page's logo. */
const SIZE = 120
/** Points per pixel in each direction, so that edges are smooth. */
const POINTS = 4

/** Draws a cup of tea in `colour` (`#rrggbb`) on a white tile with round corners, as PNG. */
export function drawCup(colour: string): Buffer {
  const ink = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16))
  const rowBytes = 1 + 4 * SIZE
  const rows = Buffer.alloc(rowBytes * SIZE)
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      const tile = coverage(isTile, x, y)
      const cup = coverage(isCup, x, y)
      const pixel = [...ink.map((channel) => Math.round(255 + (channel - 255) * cup)), Math.round(255 * tile)]
      rows.set(pixel, y * rowBytes + 1 + 4 * x)
    }
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(SIZE, 0)
  header.writeUInt32BE(SIZE, 4)
  // 8 bits per channel, red, green, blue and opacity.
  header.set([8, 6], 8)
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(rows, { level: 9 })),
    pngChunk('IEND', Buffer.alloc(0)),
  ])
}

/** Whether a point is inside a shape. The tile is a square of 1 × 1. */
type Shape = (x: number, y: number) => boolean

/** The part of a pixel that a shape covers, 0 to 1. */
function coverage(isInside: Shape, x: number, y: number): number {
  let inside = 0
  for (let down = 0; down < POINTS; down++) {
    for (let right = 0; right < POINTS; right++) {
      if (isInside((x + (right + 0.5) / POINTS) / SIZE, (y + (down + 0.5) / POINTS) / SIZE)) inside++
    }
  }
  return inside / POINTS ** 2
}

const isTile: Shape = (x, y) => isInBox([x, y], { left: 0, right: 1, top: 0, bottom: 1 }, 0.22)

const isCup: Shape = (x, y) => isBowl(x, y) || isHandle(x, y) || isSaucer(x, y) || isSteam(x, y)

const isBowl: Shape = (x, y) => y > 0.42 && ((x - 0.46) / 0.24) ** 2 + ((y - 0.42) / 0.3) ** 2 < 1

function isHandle(x: number, y: number): boolean {
  const distance = Math.hypot(x - 0.69, y - 0.51)
  return x > 0.6 && distance > 0.06 && distance < 0.11
}

const isSaucer: Shape = (x, y) => isInBox([x, y], { left: 0.2, right: 0.76, top: 0.76, bottom: 0.82 }, 0.03)

const isSteam: Shape = (x, y) =>
  y > 0.18 && y < 0.36 && [0.38, 0.54].some((at) => Math.abs(x - at - 0.02 * Math.sin(y * 35)) < 0.02)

/** Whether a point is in a box whose corners have `radius`. */
function isInBox(
  [x, y]: [number, number],
  box: { left: number; right: number; top: number; bottom: number },
  radius: number,
): boolean {
  const outside = (at: number, from: number, to: number) => Math.max(from + radius - at, at - (to - radius), 0)
  return Math.hypot(outside(x, box.left, box.right), outside(y, box.top, box.bottom)) <= radius
}
