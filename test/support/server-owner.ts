import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'

const PROGRAM = fileURLToPath(new URL('./server-owner-process.ts', import.meta.url))
const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href

export type ServerOwner = {
  url: string
  /** Leaves in order: the last to leave stops the server. */
  leave: () => Promise<void>
  killHard: () => Promise<void>
}

/**
 * Starts a process that uses the embedded server in `directory`, and answers once the server takes connections. The
 * process is out of reach of Ctrl-C and leaves when this one ends, so that no server outlives a run that is broken off.
 */
export async function startServerOwner(
  directory: string,
  options: { removesDirectory?: boolean } = {},
): Promise<ServerOwner> {
  const args = ['--import', TSX, PROGRAM, directory, ...(options.removesDirectory ? ['--remove'] : [])]
  const child = spawn(process.execPath, args, { detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const [url] = await Promise.race([once(lines, 'line') as Promise<[string]>, exited.then(() => [])])
  if (url === undefined) throw new Error('The embedded PostgreSQL did not start: its reason stands above')
  return {
    url,
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
