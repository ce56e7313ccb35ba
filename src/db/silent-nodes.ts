import { isOutage, NODE_SILENT } from './outage.ts'
import { isRefusal, isSilence } from './pool.ts'

/**
 * Returns a function that runs `work`, which asks `node`. When that got no answer, and nothing else got one from the node since it
 * began, the node is silent: from then on one piece of work at a time tries it, and the rest rejects at once with an outage, until
 * one is answered, be it by a refusal. Each of them would hold its connection for 0.9 s in vain, and a new one would have to be
 * made: ten a second at an instance, at the cost of all nodes.
 */
export function refuseWhileSilent(): <T>(node: string, work: () => Promise<T>) => Promise<T> {
  const heardAt = new Map<string, number>()
  const silent = new Set<string>()
  const tried = new Set<string>()

  return async (node, work) => {
    if (tried.has(node)) throw new Error(NODE_SILENT)
    const isTry = silent.has(node)
    if (isTry) tried.add(node)
    const beganAt = performance.now()
    try {
      const result = await work()
      hear(node)
      return result
    } catch (error) {
      // The rest, such as a crowded pool or a lost connection, tells nothing of the node.
      if (isRefusal(error) || !isOutage(error)) hear(node)
      else if (isSilence(error) && (heardAt.get(node) ?? 0) < beganAt) silent.add(node)
      throw error
    } finally {
      if (isTry) tried.delete(node)
    }
  }

  function hear(node: string) {
    heardAt.set(node, performance.now())
    silent.delete(node)
  }
}
