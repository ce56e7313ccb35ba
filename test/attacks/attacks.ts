import { setTimeout as sleep } from 'node:timers/promises'
import { attack } from './attacker.ts'
import type { AttackerName } from './attackers.ts'
import { openPages, requestLists } from './other-users.ts'
import type { Entrance, Scene } from './scene.ts'

/** Result of an attack, besides the bystander's creates. */
export type Outcome = {
  /** Description of the requests and responses. */
  sent: string
  /** Processor cores that the attacker used. */
  cores?: number
  /** Promises that were broken. */
  broken?: string[]
}

export type Attack = {
  seconds: number
  entrance: Entrance
  run: (scene: Scene, url: string, seconds: number) => Promise<Outcome>
}

/** Other users who must be served during an attack. Returns the broken promises. */
type Others = (scene: Scene, url: string, seconds: number) => Promise<string[]>

/** All attacks in the order of execution: first against the service itself, then through HAProxy. */
export const ATTACKS: Record<AttackerName, Attack> = {
  pipelining: by('pipelining', 10, 'service'),
  hosts: by('hosts', 8, 'service'),
  keys: by('keys', 8, 'service'),
  'broken-hosts': by('broken-hosts', 5, 'service'),
  paths: by('paths', 5, 'service'),
  headers: by('headers', 5, 'service'),
  'slow-senders': by('slow-senders', 12, 'service'),
  lists: by('lists', 15, 'service', requestLists),
  'many-lists': by('many-lists', 10, 'service'),
  trailers: by('trailers', 10, 'balancer'),
  silent: by('silent', 12, 'balancer'),
  unsent: by('unsent', 15, 'balancer'),
  qr: by('qr', 10, 'balancer'),
  qrs: by('qrs', 10, 'balancer'),
  'good-key': by('good-key', 20, 'balancer'),
  // Runs last: HAProxy notices only by the next heartbeat that a page was closed. Until then it rejects the address
  // with 1,000 open pages.
  pages: by('pages', 15, 'balancer', openPages),
}

/** Runs without an attack, for comparison. */
export const QUIET: Record<Entrance | 'afterwards', Attack> = {
  service: { seconds: 20, entrance: 'service', run: wait },
  balancer: { seconds: 20, entrance: 'balancer', run: wait },
  afterwards: { seconds: 10, entrance: 'service', run: wait },
}

async function wait(_scene: Scene, _url: string, seconds: number): Promise<Outcome> {
  await sleep(seconds * 1_000)
  return { sent: 'nothing' }
}

function by(name: AttackerName, seconds: number, entrance: Entrance, others?: Others): Attack {
  return {
    seconds,
    entrance,
    async run(scene, url, seconds) {
      const { attacker: tenant, orderIds } = scene
      const [outcome, broken] = await Promise.all([
        attack(name, { url, seconds, tenant, orderIds }),
        others?.(scene, url, seconds) ?? [],
      ])
      return { ...outcome, broken }
    },
  }
}
