// Runs one attacker in a process of its own, so that the innocent clients do not wait for it: started by attacker.ts, which
// sends the name and the target, and gets the report. It ends by itself: after its time, or when its parent is gone.
import { ATTACKERS, type AttackerName } from './attackers.ts'
import type { Target } from './target.ts'

/** What an attacker may take beyond its time, to open and to close its connections. */
const GRACE_MS = 10_000

process.once('disconnect', () => process.exit(1))
process.once('message', async ({ name, target }: { name: AttackerName; target: Target }) => {
  setTimeout(() => process.exit(1), target.seconds * 1_000 + GRACE_MS)
  const [cpuBefore, startedAt] = [process.cpuUsage(), performance.now()]
  const sent = await ATTACKERS[name](target)
  const { user, system } = process.cpuUsage(cpuBefore)
  const cores = (user + system) / 1_000 / (performance.now() - startedAt)
  process.send?.({ sent, cores }, () => process.exit(0))
})
