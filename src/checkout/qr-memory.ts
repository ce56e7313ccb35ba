import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'

/** The name of an order's image. */
export const qrName = (orderId: string, type: string) => `${orderId} ${type}`

export type QrMemory = ReturnType<typeof createQrMemory>

/** An image that waits to be drawn. */
type Waiting = { draw: () => void; refuse: () => void; since: number }

/**
 * Remembers the images that were asked for most recently, because browsers, proxies and attackers ask for the same one
 * again. Drawing one takes 1 to 4 ms in which nothing else is served, so only one is drawn in a turn of the event loop.
 * Merchants take turns, so that one with many orders at once delays neither the answers nor the customers of another.
 * Whether an image may still be shown is for the caller to ask.
 */
export function createQrMemory({ qrImages, qrImagesBytes, qrsWaiting, qrWaitingMs }: Limits['pages']) {
  const images = new Map<string, Buffer>()
  const asked = new Map<string, Promise<Buffer>>()
  /** By merchant; each has at least one, or its turn has just come. */
  const waiting = new Map<string, Waiting[]>()
  let drawing = false
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

  async function drawInTurns() {
    drawing = true
    while (waiting.size > 0) {
      for (const [mid, ofMerchant] of waiting) {
        await turnOfTheLoop()
        refuseLate(ofMerchant)
        ofMerchant.shift()?.draw()
        if (ofMerchant.length === 0) waiting.delete(mid)
      }
    }
    drawing = false
  }

  /** They wait in the order in which they came. */
  function refuseLate(ofMerchant: Waiting[]) {
    const oldest = performance.now() - qrWaitingMs
    while (ofMerchant[0] && ofMerchant[0].since < oldest) ofMerchant.shift()?.refuse()
  }

  function drawLater(name: string, mid: string, draw: () => Buffer): Promise<Buffer> {
    const drawn = new Promise<Buffer>((resolve, reject) => {
      const one: Waiting = {
        draw() {
          asked.delete(name)
          try {
            const image = draw()
            remember(name, image)
            resolve(image)
          } catch (error) {
            reject(error)
          }
        },
        refuse() {
          asked.delete(name)
          reject(unavailable())
        },
        since: performance.now(),
      }
      const ofMerchant = waiting.get(mid)
      if (ofMerchant) ofMerchant.push(one)
      else waiting.set(mid, [one])
    })
    asked.set(name, drawn)
    if (!drawing) void drawInTurns()
    return drawn
  }

  return {
    /**
     * The image named `name` of an order of `mid`, which is drawn where it is not remembered. 503 when too many of that
     * merchant wait to be drawn, unless `mayWait`: then it waits behind all of them.
     */
    async imageOf(name: string, mid: string, draw: () => Buffer, { mayWait = false } = {}): Promise<Buffer> {
      const image = images.get(name)
      if (image) {
        remember(name, image)
        return image
      }
      const others = asked.get(name)
      if (others) return others
      if ((waiting.get(mid)?.length ?? 0) >= qrsWaiting && !mayWait) throw unavailable()
      return drawLater(name, mid, draw)
    },
  }
}
