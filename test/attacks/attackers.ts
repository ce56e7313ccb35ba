import { badTrailers } from './attackers/bad-trailers.ts'
import { brokenHosts } from './attackers/broken-hosts.ts'
import { floodingKey } from './attackers/flooding-key.ts'
import { headerFloods } from './attackers/header-floods.ts'
import { idleReaders } from './attackers/idle-readers.ts'
import { livePages } from './attackers/live-pages.ts'
import { longHosts } from './attackers/long-hosts.ts'
import { longPaths } from './attackers/long-paths.ts'
import { manyLists } from './attackers/many-lists.ts'
import { manyQrs } from './attackers/many-qrs.ts'
import { pipelining } from './attackers/pipelining.ts'
import { qrImages } from './attackers/qr-images.ts'
import { randomKeys } from './attackers/random-keys.ts'
import { silentConnections } from './attackers/silent-connections.ts'
import { slowLists } from './attackers/slow-lists.ts'
import { slowSenders } from './attackers/slow-senders.ts'
import { unsentBodies } from './attackers/unsent-bodies.ts'
import type { Attacker } from './target.ts'

/** The attackers that need nothing but connections, in the order in which they run. */
export const ATTACKERS = {
  trailers: badTrailers,
  pipelining,
  hosts: longHosts,
  readers: idleReaders,
  silent: silentConnections,
  pages: livePages,
  unsent: unsentBodies,
  qr: qrImages,
  qrs: manyQrs,
  lists: slowLists,
  'many-lists': manyLists,
  keys: randomKeys,
  'good-key': floodingKey,
  'broken-hosts': brokenHosts,
  paths: longPaths,
  'slow-senders': slowSenders,
  headers: headerFloods,
} satisfies Record<string, Attacker>

export type AttackerName = keyof typeof ATTACKERS
