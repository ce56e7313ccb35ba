import type { JobSource } from '../../src/platform/scheduler.ts'

/** Does what is due of these sources, as one look of the scheduler does, job after job. */
export async function doWhatIsDue(...sources: JobSource[]): Promise<void> {
  const never = new AbortController().signal
  for (const { findQueues, atOnce } of sources) {
    for (const queue of await findQueues()) for (const job of await queue.claim(atOnce.ofQueue)) await job(never)
  }
}

/** The same look after look, until nothing is due: one look takes only some of many jobs, chosen at random. */
export async function doAllThatIsDue(source: JobSource): Promise<void> {
  while ((await source.findQueues()).length > 0) await doWhatIsDue(source)
}
