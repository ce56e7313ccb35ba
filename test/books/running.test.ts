import { expect, it } from 'vitest'
import type { Instance } from '../../src/books/instances.ts'
import { summarize } from '../../src/books/running.ts'

const NOW = new Date('2026-04-01T12:00:00Z')
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1000)

const instance = (instanceId: string, host: string, startedAgo: number, seenAgo: number): Instance => ({
  instanceId,
  host,
  version: '1.0.0',
  startedAt: ago(startedAgo),
  seenAt: ago(seenAgo),
  stoppedAt: null,
  refused: 0,
  lastNotificationAt: null,
  acquirersAway: [],
})

const silentOf = (...instances: Instance[]) =>
  summarize(instances, NOW, 60_000).silent.map(({ instanceId, times }) => [instanceId, times])

it('instances that were killed over and over are named once for each host, by the last one', () => {
  const killed = Array.from({ length: 1000 }, (_, n) => instance(`a${n}`, 'a', 2000 + n, 1100 + n))
  expect(silentOf(...killed, instance('b', 'b', 500, 61))).toEqual([
    ['a0', 1000],
    ['b', 1],
  ])
})

it('one that was killed is forgotten when another was started on its host afterwards, and not when that ran before', () => {
  const killed = instance('killed', 'a', 900, 600)
  expect(silentOf(instance('next', 'a', 590, 1), killed)).toEqual([])
  expect(silentOf(instance('beside', 'a', 890, 1), killed)).toEqual([['killed', 1]])
  expect(silentOf(instance('elsewhere', 'b', 590, 1), killed)).toEqual([['killed', 1]])
})
