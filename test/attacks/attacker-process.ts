// Runs one attacker in its own process, so that it does not delay the bystander. attacker.ts starts it, sends name and
// target, and receives the report. It exits by itself after its time, or when its parent exits.
import { ATTACKERS, type AttackerName } from './attackers.ts'
import type { Target } from './target.ts'

/** Time beyond the attack for opening and closing connections. */
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
