import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import pg from 'pg'

/*
 * Fixes what would differ between two runs: the clocks of this process and of PostgreSQL, and random values. The
 * modules of the service need no change, because they read all three when they use them.
 */

let momentMs = 0

/** Sets the clock of this process, which then stands still, to a time in India such as `2026-10-05T10:00`. */
export const setClock = (moment: string) => {
  momentMs = Date.parse(`${moment}:00+05:30`)
}
export const advanceClock = (ms: number) => {
  momentMs += ms
}

class FixedDate extends Date {
  constructor(...parts: []) {
    if (parts.length === 0) super(momentMs)
    else super(...parts)
  }
  static override now = () => momentMs
}
globalThis.Date = FixedDate as DateConstructor

let drawn = 0

/** Restarts the random values, so that an additional value in one command changes no value of another command. */
export const restartRandom = (part: number) => {
  drawn = part * 1_000
}

/** Values ascend, so that records with random identifiers are sorted in the order of their creation. */
function randomBytes(size: number): Buffer {
  const start = (++drawn).toString(16).padStart(8, '0')
  return Buffer.concat([Buffer.from(start, 'hex'), crypto.hash('sha512', start, 'buffer')]).subarray(0, size)
}

function randomUUID(): string {
  const hex = randomBytes(16).toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join('-')
}

function randomInt(from: number, to?: number): number {
  const [least, beyond] = to === undefined ? [0, from] : [from, to]
  return least + (++drawn % (beyond - least))
}

Object.assign(crypto, { randomBytes, randomUUID, randomInt })
syncBuiltinESMExports()
Math.random = () => 0.5

/** Runs statements on a connection of their own, because a database with open connections cannot be copied. */
export async function query<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Row>(sql)).rows
  } finally {
    await client.end()
  }
}

/** SQL that gives the database functions for the time, which precede those of PostgreSQL. */
export const fixClockOf = (name: string) => `
  create schema if not exists golden;
  ${clockSql()}
  create or replace function golden.clock_timestamp() returns timestamptz stable language sql return golden.now();
  alter database ${name} set search_path = public, golden, pg_catalog`

/** SQL that sets the clock of the database to that of this process. */
export const clockSql = () =>
  `create or replace function golden.now() returns timestamptz stable language sql as
     'select timestamptz ''${new Date().toISOString()}''';`
