import { setTimeout as sleep } from 'node:timers/promises'
import { attack } from './attacker.ts'
import type { AttackerName } from './attackers.ts'
import type { Door, Field } from './field.ts'
import { askForLists, openPages } from './neighbours.ts'
import { stopDatabase } from './operator/stop-database.ts'
import { waitWithMigration } from './operator/wait-with-migration.ts'

/** What came of an attack, beside what the innocent creates show. */
export type Blow = {
  sent: string
  /** Processor cores that the attacker took. */
  cores?: number
  /** Promises that did not hold. */
  broken?: string[]
  /** Moments of performance.now(): creates that were under way between them are not judged. */
  excused?: { from: number; until: number; why: string }
}

export type Attack = {
  seconds: number
  door: Door
  strike: (field: Field, url: string, seconds: number) => Promise<Blow>
}

/** All of them, in the order in which they strike. */
export const ATTACKS: Record<string, Attack> = {
  trailers: { seconds: 10, door: 'balancer', strike: by('trailers') },
  pipelining: { seconds: 10, door: 'service', strike: by('pipelining') },
  hosts: { seconds: 8, door: 'service', strike: by('hosts') },
  readers: { seconds: 10, door: 'service', strike: by('readers') },
  silent: { seconds: 12, door: 'few files', strike: by('silent') },
  pages: {
    seconds: 15,
    door: 'service',
    strike: async (field, url, seconds) => {
      const [blow, broken] = await Promise.all([by('pages')(field, url, seconds), openPages(field, url, seconds)])
      return { ...blow, broken }
    },
  },
  unsent: { seconds: 15, door: 'service', strike: by('unsent') },
  qr: { seconds: 10, door: 'service', strike: by('qr') },
  qrs: { seconds: 10, door: 'service', strike: by('qrs') },
  lists: {
    seconds: 15,
    door: 'service',
    strike: async (field, url, seconds) => {
      const [blow, broken] = await Promise.all([by('lists')(field, url, seconds), askForLists(field, url, seconds)])
      return { ...blow, broken }
    },
  },
  'many-lists': { seconds: 10, door: 'service', strike: by('many-lists') },
  migration: { seconds: 10, door: 'service', strike: waitWithMigration },
  database: { seconds: 10, door: 'service', strike: stopDatabase },
  keys: { seconds: 8, door: 'service', strike: by('keys') },
  'broken-hosts': { seconds: 5, door: 'service', strike: by('broken-hosts') },
  paths: { seconds: 5, door: 'service', strike: by('paths') },
  'slow-senders': { seconds: 12, door: 'service', strike: by('slow-senders') },
  headers: { seconds: 5, door: 'service', strike: by('headers') },
}

/** Nobody attacks: what the others are compared to. */
export const QUIET: Record<'service' | 'balancer' | 'afterwards', Attack> = {
  service: { seconds: 20, door: 'service', strike: wait },
  balancer: { seconds: 10, door: 'balancer', strike: wait },
  afterwards: { seconds: 10, door: 'service', strike: wait },
}

async function wait(_field: Field, _url: string, seconds: number): Promise<Blow> {
  await sleep(seconds * 1_000)
  return { sent: 'nothing' }
}

function by(name: AttackerName): Attack['strike'] {
  return ({ attacker: tenant, orderIds }, url, seconds) => attack(name, { url, seconds, tenant, orderIds })
}
