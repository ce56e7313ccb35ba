import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readMoment, zonedMoment } from '../src/platform/time.ts'
import { runs } from './support/generated.ts'
import { startService } from './support/service.ts'

const service = await startService()

const pad = (value: number, digits = 2) => String(value).padStart(digits, '0')
const numbers = (max: number) => fc.integer({ min: 0, max })

/** A written time, and the moment that it names in milliseconds and microseconds; undefined if no such moment exists. */
type Written = { text: string; moment: { ms: number; micros: number } | undefined }

/** Hours, minutes and seconds. A few of the times have one of these beyond its range. */
const clock: fc.Arbitrary<[number, number, number]> = fc.oneof(
  { weight: 9, arbitrary: fc.tuple(numbers(23), numbers(59), numbers(59)) },
  { weight: 1, arbitrary: fc.constantFrom<[number, number, number]>([24, 0, 0], [23, 60, 0], [23, 59, 60]) },
)
const day = fc.tuple(
  fc.integer({ min: 2000, max: 2099 }),
  fc.integer({ min: 1, max: 12 }),
  fc.integer({ min: 1, max: 31 }),
)
const fraction = fc.oneof(
  fc.constant(''),
  fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 9 }),
)
const zone = fc.oneof(
  fc.constantFrom('Z', 'z', '+05:30', '+0530'),
  fc
    .tuple(fc.constantFrom('+', '-'), numbers(14), numbers(59), fc.constantFrom(':', ''))
    .map(([sign, hours, minutes, colon]) => `${sign}${pad(hours)}${colon}${pad(minutes)}`),
)

const written = fc
  .record({ day, clock, fraction, zone, hasSeconds: fc.boolean(), separator: fc.constantFrom('T', 't', ' ') })
  .map(({ day: [y, mo, d], clock, fraction, zone, hasSeconds, separator }): Written => {
    const [h, mi, s] = clock
    const seconds = hasSeconds ? `:${pad(s)}${fraction && `.${fraction}`}` : ''
    const text = `${pad(y, 4)}-${pad(mo)}-${pad(d)}${separator}${pad(h)}:${pad(mi)}${seconds}${zone}`
    const isDay = new Date(Date.UTC(y, mo - 1, d)).getUTCDate() === d
    if (!isDay || h > 23 || mi > 59 || (hasSeconds && s > 59)) return { text, moment: undefined }
    const [sign, hours, minutes] = [zone[0] === '-' ? -1 : 1, zone.slice(1, 3), zone.slice(-2)]
    const offset = /z/i.test(zone) ? 0 : sign * (Number(hours) * 60 + Number(minutes))
    const micros = hasSeconds ? Number(fraction.padEnd(6, '0').slice(0, 6)) : 0
    const ms = Date.UTC(y, mo - 1, d, h, mi - offset, hasSeconds ? s : 0)
    return { text, moment: { ms, micros } }
  })

it('notifications, imports, Date and PostgreSQL read the same moment from every accepted form of a time', async () => {
  const seen: Written[] = []
  fc.assert(
    fc.property(written, (one) => {
      const { text, moment } = one
      const expected = moment && moment.ms + Math.floor(moment.micros / 1000)
      const read = readMoment(text)
      expect(read && new Date(read).getTime(), text).toBe(expected)
      expect(zonedMoment.safeParse(text).data?.getTime(), text).toBe(expected)
      seen.push(one)
    }),
    { numRuns: runs(20_000, 1_000) },
  )
  const accepted = seen.filter(({ moment }) => moment !== undefined)
  expect(accepted.length).toBeGreaterThan(seen.length / 2)
  expect(seen.length - accepted.length).toBeGreaterThan(seen.length / 50)
  const { rows } = await service.db.query<{ micros: string; written: string }>(
    `select trunc(extract(epoch from read::timestamptz) * 1000000)::text as micros,
            trunc(extract(epoch from date_trunc('second', written::timestamptz)))::text as written
       from unnest($1::text[], $2::text[]) as t (read, written)`,
    [accepted.map(({ text }) => readMoment(text)), accepted.map(({ text }) => text.replace(/\.\d+/, ''))],
  )
  expect(rows).toEqual(
    accepted.map(({ moment: { ms, micros } = { ms: 0, micros: 0 } }) => ({
      micros: String(BigInt(ms) * 1000n + BigInt(micros)),
      written: String(ms / 1000),
    })),
  )
})

it('a time without a time zone is a time in India in a file, only as YYYY-MM-DD HH:MM:SS, and no time in a notification', () => {
  expect(readMoment('2026-11-28 22:20:05')).toBe('2026-11-28T22:20:05+05:30')
  for (const text of ['2026-11-28T22:20:05', '2026-11-28 22:20', '2026-11-28 22:20:05.5', '2026-11-28 22:20:05 ']) {
    expect(readMoment(text), text).toBeUndefined()
  }
  for (const text of ['2026-11-28 22:20:05', '2026-11-28T22:20:05', '2026-11-28']) {
    expect(zonedMoment.safeParse(text).success, text).toBe(false)
  }
})
