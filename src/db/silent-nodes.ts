import { isOutage, NODE_SILENT } from './outage.ts'
import { isRefusal, isSilence } from './pool.ts'

/**
 * Returns a function that runs `work`, which asks `node` and no other. When a statement of it has waited its time in vain, and
 * nothing else got an answer from the node since the work began, the node counts as silent until it answers anything. Meanwhile
 * work for it starts only every `tryEveryMs`, and the rest rejects at once with an outage: each piece would hold its connection
 * for 0.9 s, and the new one that is made then costs all nodes. Without this each instance made ten a second.
 */
export function refuseWhileSilent(tryEveryMs: number): <T>(node: string, work: () => Promise<T>) => Promise<T> {
  const heardAt = new Map<string, number>()
  /** When each of those that are silent may be tried again. */
  const nextTryAt = new Map<string, number>()

  return async (node, work) => {
    const beganAt = performance.now()
    const tryAt = nextTryAt.get(node)
    if (tryAt !== undefined) {
      if (beganAt < tryAt) throw new Error(NODE_SILENT)
      // By the clock, not when this one has ended: it may be what is slow, and a try through a lost connection says nothing.
      nextTryAt.set(node, beganAt + tryEveryMs)
    }
    try {
      const result = await work()
      hear(node)
      return result
    } catch (error) {
      // The rest, such as a crowded pool or a lost connection, tells nothing of the node.
      if (isRefusal(error) || !isOutage(error)) hear(node)
      else if (isSilence(error)) miss(node, beganAt)
      throw error
    }
  }

  function hear(node: string) {
    heardAt.set(node, performance.now())
    nextTryAt.delete(node)
  }

  function miss(node: string, beganAt: number) {
    const hasAnswered = (heardAt.get(node) ?? 0) >= beganAt
    if (!hasAnswered && !nextTryAt.has(node)) nextTryAt.set(node, 0)
  }
}
