import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createQrMemory } from '../../src/checkout/qr-memory.ts'
import { LIMITS } from '../../src/limits.ts'

const { qrImages: IMAGES, qrImagesBytes: BYTES, qrsWaiting: WAITING } = LIMITS.pages

/** A memory, and the names of what had to be drawn. */
function newMemory(imageBytes: number) {
  const memory = createQrMemory(LIMITS.pages)
  const drawn: string[] = []
  const ask = (name: string, mid = 'A', options = {}) =>
    memory.imageOf(
      name,
      mid,
      () => {
        drawn.push(name)
        return Buffer.alloc(imageBytes, name)
      },
      options,
    )
  return { memory, ask, drawn: () => drawn.splice(0) }
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

  it('refuses what would wait too long, and goes on after an image that could not be drawn', async () => {
    const { ask, drawn, memory } = newMemory(1_800)
    const failed = memory
      .imageOf('faulty', 'A', () => {
        throw new Error('cannot be drawn')
      })
      .catch((error: Error) => error.message)
    const asked = await Promise.allSettled(Array.from({ length: 200 }, (_, i) => ask(`image ${i}`)))
    expect(await failed).toBe('cannot be drawn')
    expect(drawn().length).toBe(WAITING - 1)
    const refusals = asked.filter(({ status }) => status === 'rejected')
    expect(refusals.length).toBe(200 - WAITING + 1)
    for (const refusal of refusals) expect(refusal).toMatchObject({ reason: { statusCode: 503 } })
    await expect(ask('faulty')).resolves.toBeInstanceOf(Buffer)
  })

  it('neither refuses nor delays the images of a merchant behind those of another one', async () => {
    const { ask, drawn } = newMemory(1_800)
    const many = Array.from({ length: 3 * WAITING }, (_, i) => ask(`A ${i}`, 'A', { mayWait: true }))
    await Promise.all([ask('B 0', 'B'), ask('B 1', 'B')])
    expect(drawn().length).toBeLessThanOrEqual(5)
    await Promise.all(many)
  })

  it('does not draw what waited for longer than its caller', async () => {
    const memory = createQrMemory({ ...LIMITS.pages, qrWaitingMs: 20 })
    const drawn: number[] = []
    const draw = (i: number) => () => {
      const until = performance.now() + 5
      while (performance.now() < until);
      drawn.push(i)
      return Buffer.alloc(1)
    }
    const asked = Array.from({ length: 50 }, (_, i) => memory.imageOf(`image ${i}`, 'A', draw(i), { mayWait: true }))
    const refused = (await Promise.allSettled(asked)).filter(({ status }) => status === 'rejected')
    expect(refused.length).toBeGreaterThan(30)
    expect(drawn.length + refused.length).toBe(50)
    for (const refusal of refused) expect(refusal).toMatchObject({ reason: { statusCode: 503 } })
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
