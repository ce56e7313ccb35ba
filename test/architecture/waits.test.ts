import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'

const TEST = resolve(import.meta.dirname, '..')
const LONGEST_MS = 300
/** A bank that hangs responds after the caller's limit of `LONGEST_MS`. */
const LONGEST_HANG_MS = 350

const PAUSE = /(?<!\.)\b(?:sleep|setTimeout)\(([\d_]+|[A-Z][A-Z_]+)[,)]/g
const TIMER = /\bsetTimeout\((?:\([^()]*\) => [^\n]*|\w+), ([\d_]+|[A-Z][A-Z_]+)\)/g
const HANG = /\b(?:afterMs|arrivesAfterMs): ([\d_]+)/g

/** Separate programs, which are not quick tests. */
const PROGRAMS = /^(attacks|bench|deployment|faults|mutations)\//
/** A timer that only limits a test that fails. */
const BOUNDS = /\.destroy\(new Error/

/** Milliseconds of a number, or of a constant of the same file. */
function milliseconds(value: string, source: string): number {
  const number = /^\d/.test(value) ? value : (new RegExp(`const ${value} = ([\\d_]+)$`, 'm').exec(source)?.[1] ?? '0')
  return Number(number.replaceAll('_', ''))
}

it('no quick test waits longer than 300 ms', () => {
  const files = readdirSync(TEST, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && !path.endsWith('.slow.test.ts') && !PROGRAMS.test(path),
  )
  let found = 0
  const long = files.flatMap((file) => {
    const source = readFileSync(join(TEST, file), 'utf8')
    const waitsOf = (pattern: RegExp, longest: number) =>
      [...source.matchAll(pattern)].filter(([wait, value = '']) => {
        found++
        return !BOUNDS.test(wait) && milliseconds(value, source) > longest
      })
    const waits = [...waitsOf(PAUSE, LONGEST_MS), ...waitsOf(TIMER, LONGEST_MS), ...waitsOf(HANG, LONGEST_HANG_MS)]
    return waits.map(([wait]) => `${file}: ${wait}`)
  })
  expect(long).toEqual([])
  expect([files.length > 200, found > 15]).toEqual([true, true])
})
