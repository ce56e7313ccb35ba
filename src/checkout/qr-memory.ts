import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'

/** The name of an order's image. */
export const qrName = (orderId: string, type: string) => `${orderId} ${type}`

export type QrMemory = ReturnType<typeof createQrMemory>

/**
 * Remembers the images that were asked for most recently, because browsers, proxies and attackers ask for the same one again.
 * Drawing one takes 1 to 4 ms in which nothing else is served, so only one is drawn in a turn of the event loop. Whether an image
 * may still be shown is for the caller to ask.
 */
export function createQrMemory({ qrImages, qrImagesBytes, qrsWaiting }: Limits['pages']) {
  const images = new Map<string, Buffer>()
  const waiting = new Map<string, Promise<Buffer>>()
  let lastTurn: Promise<unknown> = Promise.resolve()
  let bytes = 0

  function remember(name: string, image: Buffer) {
    // A Map keeps the order of insertion: the image that was asked for most recently is the last one.
    if (!images.delete(name)) bytes += image.length
    images.set(name, image)
    for (const [oldest, { length }] of images) {
      if (images.size <= qrImages && bytes <= qrImagesBytes) break
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
    /**
     * The image named `name`, which is drawn where it is not remembered. 503 when too many wait to be drawn, unless
     * `mayWait`: then it waits behind all of them.
     */
    async imageOf(name: string, draw: () => Buffer, { mayWait = false } = {}): Promise<Buffer> {
      const image = images.get(name)
      if (image) {
        remember(name, image)
        return image
      }
      const others = waiting.get(name)
      if (others) return others
      if (waiting.size >= qrsWaiting && !mayWait) throw unavailable()
      const drawn = drawInTurn(name, draw, lastTurn)
      waiting.set(name, drawn)
      lastTurn = drawn.catch(() => undefined)
      return drawn
    },
  }
}
