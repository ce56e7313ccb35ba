import type { Kind } from '../../src/due/clock.ts'

/** Does what is due of a kind, as one look of the clock does, piece after piece. */
export async function doWhatIsDue({ find, atOnce: { ofOwner } }: Kind): Promise<void> {
  const never = new AbortController().signal
  for (const owner of await find()) for (const work of await owner.take(ofOwner)) await work(never)
}
