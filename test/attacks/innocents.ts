import { createHttpClient } from '../faults/http-client.ts'
import type { Entry, Journal } from '../faults/journal.ts'
import { statusOf } from '../faults/journal.ts'
import { create, newName } from '../faults/operations.ts'
import type { Tenant } from '../faults/tenant.ts'

const CREATES_PER_SECOND = 25

/**
 * Not the address of the attackers, so that a limit for an address bears on those alone. Only on Linux is all of 127.0.0.0/8
 * this machine.
 */
export const INNOCENT_ADDRESS = process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1'

/** How every innocent client sends. */
export const innocentClient = () => createHttpClient({ localAddress: INNOCENT_ADDRESS })

export type Innocents = {
  /** Sends no more, and answers when all that is under way is over. */
  end: () => Promise<Journal>
}

/** A merchant who creates payments in time over connections that are kept open, whatever is answered. */
export function startInnocents(url: string, tenant: Tenant): Innocents {
  const client = innocentClient()
  const journal: Journal = []
  const underWay = new Set<Promise<void>>()
  const timer = setInterval(() => {
    const sending = send().finally(() => underWay.delete(sending))
    underWay.add(sending)
  }, 1_000 / CREATES_PER_SECOND)

  async function send() {
    const names = { orderId: newName(), idempotencyKey: undefined }
    const sentAt = performance.now()
    const entry: Entry = {
      kind: 'create',
      names,
      sentAt,
      answeredAt: undefined,
      answer: undefined,
      orderIds: new Set(),
    }
    journal.push(entry)
    entry.answer = await client.send(url, create(tenant, names))
    entry.answeredAt = performance.now()
  }

  return {
    async end() {
      clearInterval(timer)
      await Promise.all(underWay)
      client.close()
      return journal
    },
  }
}

/** What became of the creates of a journal. Times are those of all of them, refusals too. */
export type Figures = { creates: number; successes: number; p50Ms: number; p99Ms: number; others: string }

export function figuresOf(journal: Journal): Figures {
  const times = journal.map(({ answer }) => answer?.tookMs ?? Infinity).sort((a, b) => a - b)
  const quantile = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? Number.NaN
  const counts = new Map<string, number>()
  for (const entry of journal) {
    const status = String(statusOf(entry) ?? 'no answer')
    counts.set(status, (counts.get(status) ?? 0) + 1)
  }
  const successes = counts.get('200') ?? 0
  counts.delete('200')
  return {
    creates: journal.length,
    successes,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    others: [...counts].map(([status, count]) => `${status} × ${count}`).join(', '),
  }
}
