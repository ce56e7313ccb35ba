import { setTimeout as sleep } from 'node:timers/promises'
import { attack } from './attacker.ts'
import type { AttackerName } from './attackers.ts'
import { stopDatabase } from './operator/stop-database.ts'
import { waitWithMigration } from './operator/wait-with-migration.ts'
import { askForLists, openPages } from './other-users.ts'
import type { Entrance, Scene } from './scene.ts'

/** What came of an attack, beside what the bystander's creates show. */
export type Outcome = {
  /** What was sent and what came back, in words. */
  sent: string
  /** Processor cores that the attacker took from the others. */
  cores?: number
  /** Promises that did not hold. */
  broken?: string[]
  /** Moments of performance.now(): creates that were under way between them are not judged. */
  excused?: { from: number; until: number; why: string }
}

export type Attack = {
  seconds: number
  entrance: Entrance
  run: (scene: Scene, url: string, seconds: number) => Promise<Outcome>
}

/** All of them, in the order in which they run. */
export const ATTACKS: Record<string, Attack> = {
  trailers: { seconds: 10, entrance: 'balancer', run: attackWith('trailers') },
  pipelining: { seconds: 10, entrance: 'service', run: attackWith('pipelining') },
  hosts: { seconds: 8, entrance: 'service', run: attackWith('hosts') },
  readers: { seconds: 10, entrance: 'service', run: attackWith('readers') },
  silent: { seconds: 12, entrance: 'few files', run: attackWith('silent') },
  pages: {
    seconds: 15,
    entrance: 'service',
    run: async (scene, url, seconds) => {
      const [outcome, broken] = await Promise.all([
        attackWith('pages')(scene, url, seconds),
        openPages(scene, url, seconds),
      ])
      return { ...outcome, broken }
    },
  },
  unsent: { seconds: 15, entrance: 'service', run: attackWith('unsent') },
  qr: { seconds: 10, entrance: 'service', run: attackWith('qr') },
  qrs: { seconds: 10, entrance: 'service', run: attackWith('qrs') },
  lists: {
    seconds: 15,
    entrance: 'service',
    run: async (scene, url, seconds) => {
      const [outcome, broken] = await Promise.all([
        attackWith('lists')(scene, url, seconds),
        askForLists(scene, url, seconds),
      ])
      return { ...outcome, broken }
    },
  },
  'many-lists': { seconds: 10, entrance: 'service', run: attackWith('many-lists') },
  migration: { seconds: 10, entrance: 'service', run: waitWithMigration },
  database: { seconds: 10, entrance: 'service', run: stopDatabase },
  keys: { seconds: 8, entrance: 'service', run: attackWith('keys') },
  'good-key': { seconds: 10, entrance: 'service', run: attackWith('good-key') },
  'broken-hosts': { seconds: 5, entrance: 'service', run: attackWith('broken-hosts') },
  paths: { seconds: 5, entrance: 'service', run: attackWith('paths') },
  'slow-senders': { seconds: 12, entrance: 'service', run: attackWith('slow-senders') },
  headers: { seconds: 5, entrance: 'service', run: attackWith('headers') },
}

/** Nobody attacks: what the others are compared to. */
export const QUIET: Record<'service' | 'balancer' | 'afterwards', Attack> = {
  service: { seconds: 20, entrance: 'service', run: wait },
  balancer: { seconds: 10, entrance: 'balancer', run: wait },
  afterwards: { seconds: 10, entrance: 'service', run: wait },
}

async function wait(_scene: Scene, _url: string, seconds: number): Promise<Outcome> {
  await sleep(seconds * 1_000)
  return { sent: 'nothing' }
}

function attackWith(name: AttackerName): Attack['run'] {
  return ({ attacker: tenant, orderIds }, url, seconds) => attack(name, { url, seconds, tenant, orderIds })
}
