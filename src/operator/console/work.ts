import { createAudit } from '../../platform/audit.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { html } from '../../platform/html.ts'
import { toIstText } from '../../platform/time.ts'
import { formatValues } from '../commands/audit.ts'
import type { Command } from '../commands/command.ts'
import type { Values } from '../commands/field.ts'
import type { Output } from '../commands/result.ts'
import type { Page } from './layout.ts'
import type { UploadedFile } from './uploads.ts'

/** A change that an operator has requested: its preview, or with `confirmed` the change itself. */
export type RequestedChange = {
  /** Identifies the work; the audit's identifier of a confirmed change. */
  id: string
  command: Command
  values: Values
  file: UploadedFile | undefined
  back: unknown
  confirmed?: string
}

type Started = RequestedChange & { startedAt: Date }

/** A requested change that runs or has ended. `progress` is what the operator sees while it runs. */
export type Work = Started & {
  progress: string
  end?: { output: Output } | { error: unknown }
  done: Promise<void>
}

/**
 * Runs changes. Remembers the last long one of each operator in this process, so that a page can show its progress and
 * then its result.
 */
export function createWork() {
  const ofOperators = new Map<string, Work>()
  return {
    /** Returns the operator's last long work. */
    find: (operator: string) => ofOperators.get(operator),

    /** Starts a change. The work never rejects. */
    start(operator: string, requested: Started, run: (onProgress: (text: string) => void) => Promise<Output>): Work {
      const work: Work = { ...requested, progress: 'started', done: Promise.resolve() }
      work.done = run((text) => {
        work.progress = text
      }).then(
        (output) => {
          work.end = { output }
        },
        (error) => {
          work.end = { error }
        },
      )
      if (requested.command.isLong) ofOperators.set(operator, work)
      return work
    },

    /** Resolves when no work runs any more. */
    allDone: () => Promise.all([...ofOperators.values()].map(({ done }) => done)),
  }
}

/** Seconds until the page of a running change reloads itself. */
const REFRESH_SECONDS = 2

/** Returns the page of a change, or its preview, that runs. */
export function progressPage({ command, progress, startedAt, confirmed }: Work, now: Date): Page {
  const seconds = Math.round((now.getTime() - startedAt.getTime()) / 1_000)
  const what = confirmed === undefined ? 'Checking what the change does. Nothing is stored yet.' : 'Storing the change.'
  const body = html`<section class="card" role="status"><p class="amount">${progress}</p>
<p class="quiet">${what} Running for ${seconds} s. This page refreshes itself, and you can leave it and come back.</p></section>
`
  return { title: command.title, body, refreshSeconds: REFRESH_SECONDS }
}

/** Returns the page of a change that this process does not know, such as after a restart, from the audit. */
export async function endedPage(db: Queryable, id: string, commands: readonly Command[]): Promise<Page> {
  const entry = /^[0-9a-f-]{36}$/.test(id) ? await createAudit(db).find(id) : undefined
  const command = commands.find(({ name }) => name === entry?.command)
  const text = entry
    ? outcomeText(entry, command?.isLong === 'in parts')
    : 'Nothing was stored: the check ended with the console. Open the form again.'
  return { title: 'The change has ended', body: html`<section class="card" role="status"><p>${text}</p></section>\n` }
}

type Entry = NonNullable<Awaited<ReturnType<ReturnType<typeof createAudit>['find']>>>

function outcomeText({ command, at, outcome, detail }: Entry, isInParts: boolean): string {
  const began = `ops ${command}, begun at ${toIstText(at)}`
  if (outcome === 'done') return `${began}, is stored: ${formatValues(detail ?? {}) || 'no change'}`
  if (outcome === 'failed') return `${began}, failed, and nothing was stored: ${Object.values(detail ?? {}).join()}`
  return isInParts
    ? `${began}, ended without a result, and may be stored in part. Repeat it with the same file: it stores the rest, and nothing twice.`
    : `${began}, ended without a result: nothing was stored. Repeat it.`
}
