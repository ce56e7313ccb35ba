import { setTimeout as sleep } from 'node:timers/promises'
import type { Limits } from '../limits.ts'
import type { AccessKey, AccessKeys } from './access-keys.ts'

/**
 * Finds keys as `keys.find` does. Anybody can send random public keys, each of which would cost a query. So only a key that
 * was found within the last hour has a query of its own; all others that come within 10 ms share one. Refusing the address
 * instead would not do: behind a balancer without TRUST_PROXY a new merchant has the same address as the sender.
 */
export function createKeyFinder(
  keys: Pick<AccessKeys, 'find' | 'findAll'>,
  { knownKeyMs, knownKeys, gatherMs }: Limits['lookUps'],
): AccessKeys['find'] {
  /** When each was last found, by performance.now(), the latest last. */
  const known = new Map<string, number>()
  let gathering: { names: Set<string>; found: Promise<Map<string, AccessKey>> } | undefined

  return async (publicKey) => {
    const foundAt = known.get(publicKey)
    const isKnown = foundAt !== undefined && performance.now() - foundAt < knownKeyMs
    const key = await (isKnown ? keys.find(publicKey) : gather(publicKey))
    known.delete(publicKey)
    if (key) known.set(publicKey, performance.now())
    if (known.size > knownKeys) known.delete(known.keys().next().value as string)
    return key
  }

  async function gather(publicKey: string): Promise<AccessKey | undefined> {
    gathering ??= begin()
    gathering.names.add(publicKey)
    return (await gathering.found).get(publicKey)
  }

  function begin() {
    const names = new Set<string>()
    const found = sleep(gatherMs).then(() => {
      gathering = undefined
      return keys.findAll([...names])
    })
    return { names, found }
  }
}
