import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Limits } from '../limits.ts'

/** The name of an order's image. */
export const qrName = (orderId: string, type: string) => `${orderId} ${type}`

/** Returns the image of a name, which `draw` makes where it is not remembered. */
export type QrMemory = (name: string, draw: () => Buffer) => Promise<Buffer>

/**
 * Remembers the images that were asked for most recently, because browsers, proxies and attackers ask for the same one
 * again. Drawing one takes 1 to 4 ms in which nothing else is served, so only one is drawn in a turn of the event loop.
 * Whether an image may still be shown is for the caller to ask.
 */
export function createQrMemory({ qrImages, qrImagesBytes }: Limits['pages']): QrMemory {
  const images = new LRUCache<string, Buffer, () => Buffer>({
    max: qrImages,
    maxSize: qrImagesBytes,
    sizeCalculation: (image) => image.length,
    ignoreFetchAbort: true,
    async fetchMethod(_name, _stale, { context: draw }) {
      const turn = lastTurn.then(() => turnOfTheLoop())
      lastTurn = turn
      await turn
      return draw()
    },
  })
  let lastTurn = Promise.resolve()

  return (name, draw) => images.forceFetch(name, { context: draw })
}
