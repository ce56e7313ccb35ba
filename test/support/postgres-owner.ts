import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { TYPESCRIPT } from './processes.ts'

const PROGRAM = join(import.meta.dirname, 'postgres-owner-process.ts')

export type PostgresOwner = {
  url: string
  pid: number | undefined
  /** Stops the process, which stops the server if it started it. */
  leave: () => Promise<void>
  killHard: () => Promise<void>
}

/**
 * Starts a process that uses the embedded server in `directory`, and resolves once the server accepts connections. The
 * process gets no Ctrl-C and exits when this process does, so that no server outlives an interrupted run.
 */
export async function startPostgresOwner(
  directory: string,
  options: { removesDirectory?: boolean } = {},
): Promise<PostgresOwner> {
  const args = [...TYPESCRIPT, PROGRAM, directory, ...(options.removesDirectory ? ['--remove'] : [])]
  const child = spawn(process.execPath, args, { detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const [url] = await Promise.race([once(lines, 'line') as Promise<[string]>, exited.then(() => [])])
  if (url === undefined) throw new Error('The embedded PostgreSQL did not start. See its error above.')
  return {
    url,
    pid: child.pid,
    leave: async () => {
      child.stdin.end()
      await exited
    },
    killHard: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}
