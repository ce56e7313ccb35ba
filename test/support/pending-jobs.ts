import type { JobSource } from '../../src/platform/scheduler.ts'

/** Runs the pending jobs of these sources like one run of the scheduler, one job after another. */
export async function runPendingJobs(...sources: JobSource[]): Promise<void> {
  const never = new AbortController().signal
  for (const { findQueues, concurrency } of sources) {
    for (const queue of await findQueues()) for (const job of await queue.claim(concurrency.ofQueue)) await job(never)
  }
}

/** Runs pending jobs repeatedly until none is left: one run claims only some of many jobs, chosen at random. */
export async function runAllPendingJobs(source: JobSource): Promise<void> {
  while ((await source.findQueues()).length > 0) await runPendingJobs(source)
}
