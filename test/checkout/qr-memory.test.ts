import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createQrMemory } from '../../src/checkout/qr-memory.ts'
import { LIMITS } from '../../src/limits.ts'

const { qrImages: IMAGES, qrImagesBytes: BYTES } = LIMITS.pages

/** A memory, and the names of what had to be drawn. */
function newMemory(imageBytes: number) {
  const images = createQrMemory(LIMITS.pages)
  const drawn: string[] = []
  const ask = (name: string) =>
    images(name, () => {
      drawn.push(name)
      return Buffer.alloc(imageBytes, name)
    })
  return { images, ask, drawn: () => drawn.splice(0) }
}

describe('the memory of QR images', () => {
  it('draws one image once, however often it is asked for, at once or later', async () => {
    const { ask, drawn } = newMemory(1_800)
    const together = await Promise.all(Array.from({ length: 300 }, () => ask('a png')))
    for (const image of [...together, await ask('a png')]) expect(image).toEqual(Buffer.alloc(1_800, 'a png'))
    await ask('a svg')
    expect(drawn()).toEqual(['a png', 'a svg'])
  })

  it('draws one image in a turn of the event loop, so that others are served between two of them', async () => {
    const { ask, drawn } = newMemory(1_800)
    const images = Promise.all(Array.from({ length: 50 }, (_, i) => ask(`image ${i}`)))
    let most = 0
    for (let turn = 0; turn < 100; turn++) {
      await turnOfTheLoop()
      most = Math.max(most, drawn().length)
    }
    await images
    expect(most).toBe(1)
  })

  it('goes on after an image that could not be drawn', async () => {
    const { images, ask } = newMemory(1_800)
    const faulty = () => {
      throw new Error('cannot be drawn')
    }
    await expect(images('faulty', faulty)).rejects.toThrow('cannot be drawn')
    await expect(ask('faulty')).resolves.toBeInstanceOf(Buffer)
  })

  it(`keeps the ${IMAGES} that were asked for last`, async () => {
    const { ask, drawn } = newMemory(100)
    for (let i = 0; i < IMAGES; i++) await ask(`image ${i}`)
    await ask('image 0')
    await ask('one more')
    drawn()
    for (const name of ['image 0', 'one more', 'image 2', `image ${IMAGES - 1}`]) await ask(name)
    expect(drawn()).toEqual([])
    await ask('image 1')
    expect(drawn()).toEqual(['image 1'])
  })

  it('keeps no more than 8 MiB of the largest', async () => {
    const largest = 117_028
    const { ask, drawn } = newMemory(largest)
    const kept = Math.floor(BYTES / largest)
    for (let i = 0; i < 2 * kept; i++) await ask(`image ${i}`)
    drawn()
    for (let i = kept; i < 2 * kept; i++) await ask(`image ${i}`)
    expect(drawn()).toEqual([])
    await ask(`image ${kept - 1}`)
    expect(drawn()).toEqual([`image ${kept - 1}`])
  })
})
