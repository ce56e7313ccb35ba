import { describe, expect, it } from 'vitest'
import { createQrMemory } from '../../src/checkout/qr-memory.ts'

const IMAGES = 1_000
const BYTES = 8 * 1024 * 1024

/** A memory, and the names of what had to be drawn. */
function newMemory(imageBytes: number) {
  const memory = createQrMemory()
  const drawn: string[] = []
  const ask = (name: string) =>
    memory.imageOf(name, () => {
      drawn.push(name)
      return Buffer.alloc(imageBytes, name)
    })
  return { ask, drawn: () => drawn.splice(0) }
}

describe('the memory of QR images', () => {
  it('draws one image once, however often it is asked for', () => {
    const { ask, drawn } = newMemory(1_800)
    for (let i = 0; i < 300; i++) expect(ask('a png').equals(Buffer.alloc(1_800, 'a png'))).toBe(true)
    ask('a svg')
    expect(drawn()).toEqual(['a png', 'a svg'])
  })

  it(`keeps the ${IMAGES} that were asked for last`, () => {
    const { ask, drawn } = newMemory(100)
    for (let i = 0; i < IMAGES; i++) ask(`image ${i}`)
    ask('image 0')
    ask('one more')
    drawn()
    for (const name of ['image 0', 'one more', 'image 2', `image ${IMAGES - 1}`]) ask(name)
    expect(drawn()).toEqual([])
    ask('image 1')
    expect(drawn()).toEqual(['image 1'])
  })

  it('keeps no more than 8 MiB of the largest', () => {
    const largest = 117_028
    const { ask, drawn } = newMemory(largest)
    const kept = Math.floor(BYTES / largest)
    for (let i = 0; i < 2 * kept; i++) ask(`image ${i}`)
    drawn()
    for (let i = kept; i < 2 * kept; i++) ask(`image ${i}`)
    expect(drawn()).toEqual([])
    ask(`image ${kept - 1}`)
    expect(drawn()).toEqual([`image ${kept - 1}`])
  })
})
