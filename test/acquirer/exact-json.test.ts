import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseExact } from '../../src/gateway/acquirers/exact-json.ts'

describe('parseExact', () => {
  it.each([
    ['{"amount":170.00}', { amount: '170.00' }],
    ['{"id":1234881617186388204}', { id: '1234881617186388204' }],
    ['{"a":199.99999999999999999,"b":[-1.5e3,0]}', { a: '199.99999999999999999', b: ['-1.5e3', '0'] }],
    ['{"a":"12","b":"say \\"1\\", {2}","c":null,"d":true}', { a: '12', b: 'say "1", {2}', c: null, d: true }],
    ['[{"a":1},{"a":2}]', [{ a: '1' }, { a: '2' }]],
  ])('parseExact returns each number as text: %s', (json, expected) => {
    expect(parseExact(json)).toEqual(expected)
  })

  it.each([
    '{"a":1,"a":2}',
    '{"data":{"order":{"id":"x"},"order":{"id":"y"}}}',
    '{"a":1,"\\u0061":2}',
    '{',
    '1 2',
    '',
    '01',
    '{1:2}',
    '"a":1',
    '[1.2.3]',
  ])('parseExact rejects the JSON text %s', (json) => {
    expect(() => parseExact(json)).toThrow(SyntaxError)
  })

  it('parseExact returns the same value as JSON.parse, except that numbers are text', () => {
    const asText = (_name: string, value: unknown) => (typeof value === 'number' ? JSON.stringify(value) : value)
    fc.assert(
      fc.property(fc.json(), (json) => {
        expect(parseExact(json)).toEqual(JSON.parse(json.replace(/-0(?![.\d])/g, '0'), asText))
      }),
    )
  })

  it('parseExact rejects every text that JSON.parse rejects', () => {
    const signs = fc.constantFrom(...'{}[]",:-+.eE01 \\')
    const changed = fc.tuple(fc.json(), fc.nat(), fc.nat(2), signs).map(([json, at, cut, sign]) => {
      const index = at % (json.length + 1)
      return json.slice(0, index) + sign + json.slice(index + cut)
    })
    fc.assert(
      fc.property(changed, (text) => {
        try {
          JSON.parse(text)
        } catch {
          expect(() => parseExact(text)).toThrow(SyntaxError)
        }
      }),
    )
  })
})
