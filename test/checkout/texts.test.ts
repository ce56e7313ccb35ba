import { describe, expect, it } from 'vitest'
import { TEXTS, textsFor } from '../../src/gateway/checkout/texts.ts'

const places = (text: string) => (text.match(/\{\w*\}/g) ?? []).sort()

describe('the texts of the pay page', () => {
  it.each(Object.entries(TEXTS))('%s uses the script of each language and the same placeholders', (_key, row) => {
    const { en, ...translations } = row
    expect(en).toMatch(/^[ -~·₹]+$/)
    expect(translations.hi).toMatch(/\p{Script=Devanagari}/u)
    for (const text of Object.values(translations)) {
      expect(text).toBe(text.trim().normalize('NFC'))
      expect(places(text)).toEqual(places(en))
    }
    expect(new Set(Object.values(row)).size).toBe(Object.keys(row).length)
  })

  it('are English unless the browser prefers Hindi', () => {
    expect(textsFor(undefined)).toMatchObject({ language: 'en', pay: 'Pay' })
    expect(textsFor('ta-IN,ta;q=0.9')).toMatchObject({ language: 'en', pay: 'Pay' })
    expect(textsFor('hi-IN,en;q=0.9')).toMatchObject({ language: 'hi', pay: 'भुगतान करें' })
  })
})
