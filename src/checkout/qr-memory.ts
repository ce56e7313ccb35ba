/** Enough for the payments of a busy minute; the PNG of a usual link has 1.8 kB, its SVG 14 kB. */
const IMAGES_LIMIT = 1_000
/** The longest link that a merchant can have makes an SVG of 117 kB: without a limit of bytes 1,000 of them were 117 MB. */
const IMAGES_LIMIT_BYTES = 8 * 1024 * 1024

/**
 * Remembers the images that were asked for last. Drawing one takes 1 to 4 ms of everybody's time, and browsers, proxies and
 * attackers ask for the same one again. Whether an image may still be shown is for the caller to ask.
 */
export function createQrMemory() {
  const images = new Map<string, Buffer>()
  let bytes = 0

  return {
    /** The image named `name`, which is drawn where it is not remembered. */
    imageOf(name: string, draw: () => Buffer): Buffer {
      const image = images.get(name) ?? draw()
      // Last in the order of the map is what was asked for last.
      if (!images.delete(name)) bytes += image.length
      images.set(name, image)
      for (const [oldest, { length }] of images) {
        if (images.size <= IMAGES_LIMIT && bytes <= IMAGES_LIMIT_BYTES) break
        images.delete(oldest)
        bytes -= length
      }
      return image
    },
  }
}
