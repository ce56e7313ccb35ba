import type { Kind } from '../../src/due/clock.ts'

/** Does what is due of these kinds, as one look of the clock does, piece after piece. */
export async function doWhatIsDue(...kinds: Kind[]): Promise<void> {
  const never = new AbortController().signal
  for (const { find, atOnce } of kinds) {
    for (const owner of await find()) for (const work of await owner.take(atOnce.ofOwner)) await work(never)
  }
}
