import { describe, expect, it } from 'vitest'
import { type Create, figuresOf } from './bystander.ts'
import { brokenPromises } from './verdict.ts'

/** Returns creates of which the first `slow` take 100 ms and the first `rejected` are 503; the others take 5 ms. */
function creates(count: number, { slow = 0, rejected = 0 } = {}): Create[] {
  return Array.from({ length: count }, (_, i) => {
    const response = { status: i < rejected ? 503 : 200, headers: {}, text: '', tookMs: i < slow ? 100 : 5 }
    return { sentAt: 0, respondedAt: response.tookMs, response }
  })
}

const quiet = figuresOf(creates(500))
const attack = (name: string, own: Create[], broken: string[] = []) => ({ name, creates: own, broken })

describe('the verdict on attacks', () => {
  it('the verdict is positive if the p99 of creates is at most 10 times the p99 without attacks', () => {
    const attacks = [attack('one', creates(250, { slow: 10 })), attack('others', creates(4_000))]
    expect(brokenPromises(attacks, quiet)).toEqual([])
  })

  it('the verdict is negative if the p99 of creates is more than 10 times the p99 without attacks', () => {
    const attacks = [attack('one', creates(250, { slow: 100 })), attack('others', creates(4_000))]
    expect(brokenPromises(attacks, quiet)).toEqual([
      { name: 'all attacks', broken: ['the p99 is at most 10 times that of the quiet run: it is 20.0 times'] },
    ])
  })

  it('the verdict on selected attacks, which have no quiet run, ignores the p99 and requires 99 % of 200 responses', () => {
    expect(brokenPromises([attack('one', creates(250, { slow: 100 }))], undefined)).toEqual([])
    expect(brokenPromises([attack('one', creates(250, { rejected: 3 }))], undefined)).toHaveLength(2)
  })

  it('the verdict is negative if fewer than 99 % of the creates during one attack return 200', () => {
    const attacks = [attack('one', creates(200, { rejected: 3 })), attack('others', creates(4_000))]
    expect(brokenPromises(attacks, quiet)).toEqual([
      { name: 'one', broken: ['99 % of the creates are 200: 98.5 % are'] },
    ])
  })

  it('the verdict is negative if one attack reports a broken promise', () => {
    expect(brokenPromises([attack('one', creates(200), ['the service keeps running'])], quiet)).toEqual([
      { name: 'one', broken: ['the service keeps running'] },
    ])
  })
})
