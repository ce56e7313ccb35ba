import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { unavailable } from '../errors.ts'

/** Enough for the payments of a busy minute; the PNG of a usual link has 1.8 kB, its SVG 14 kB. */
const IMAGES_LIMIT = 1_000
/** The longest link that a merchant can have makes an SVG of 117 kB: without a limit of bytes 1,000 of them were 117 MB. */
const IMAGES_LIMIT_BYTES = 8 * 1024 * 1024

/** Images that wait to be drawn; the last of 100 waits for about half a second. */
const WAITING_LIMIT = 100

export type QrMemory = ReturnType<typeof createQrMemory>

/**
 * Remembers the images that were asked for last, because browsers, proxies and attackers ask for the same one again. Drawing
 * one takes 1 to 4 ms in which nothing else is served, so only one is drawn in a turn of the event loop. Whether an image
 * may still be shown is for the caller to ask.
 */
export function createQrMemory() {
  const images = new Map<string, Buffer>()
  const waiting = new Map<string, Promise<Buffer>>()
  let lastTurn: Promise<unknown> = Promise.resolve()
  let bytes = 0

  function remember(name: string, image: Buffer) {
    // Last in the order of the map is what was asked for last.
    if (!images.delete(name)) bytes += image.length
    images.set(name, image)
    for (const [oldest, { length }] of images) {
      if (images.size <= IMAGES_LIMIT && bytes <= IMAGES_LIMIT_BYTES) break
      images.delete(oldest)
      bytes -= length
    }
  }

  async function drawInTurn(name: string, draw: () => Buffer, turn: Promise<unknown>): Promise<Buffer> {
    await turn
    await turnOfTheLoop()
    waiting.delete(name)
    const image = draw()
    remember(name, image)
    return image
  }

  return {
    /** The image named `name`, which is drawn where it is not remembered. 503 when too many wait to be drawn. */
    async imageOf(name: string, draw: () => Buffer): Promise<Buffer> {
      const image = images.get(name)
      if (image) {
        remember(name, image)
        return image
      }
      const others = waiting.get(name)
      if (others) return others
      if (waiting.size >= WAITING_LIMIT) throw unavailable()
      const drawn = drawInTurn(name, draw, lastTurn)
      waiting.set(name, drawn)
      lastTurn = drawn.catch(() => undefined)
      return drawn
    },
  }
}
