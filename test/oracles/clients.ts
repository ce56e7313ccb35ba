import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const FILES = ['package.json', 'package-lock.json'].map((file) => join(import.meta.dirname, file))

/**
 * Installs the acquirers' clients outside the checkout, where no other test reads their files, once per lock file.
 * Returns their folder; undefined, with a message, without a registry.
 */
export async function installClients(): Promise<string | undefined> {
  const hash = createHash('sha256').update(
    FILES.map((file) => readFileSync(file, 'utf8')).join(`${process.getuid?.()}`),
  )
  const folder = join(tmpdir(), `upi-payments-oracles-${hash.digest('hex').slice(0, 8)}`)
  if (existsSync(folder)) return join(folder, 'node_modules')
  const unfinished = mkdtempSync(`${folder}-`)
  try {
    for (const file of FILES) cpSync(file, join(unfinished, file.slice(import.meta.dirname.length)))
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-retries=0']
    await promisify(execFile)('npm', args, { cwd: unfinished, timeout: 120_000 })
    renameSync(unfinished, folder)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    // Another process may have installed the clients meanwhile.
    if (!existsSync(folder)) {
      console.warn(`npm cannot install the acquirers' clients: ${String(error).slice(0, 300)}. Skipped`)
      return undefined
    }
  }
  return join(folder, 'node_modules')
}

/** Rejects every connection of this process to another address than 127.0.0.1, and collects these addresses. */
export function allowOnlyLoopback() {
  const { connect } = Socket.prototype
  const rejected: string[] = []
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
    // Node.js itself passes an array of the arguments.
    const [to] = (Array.isArray(args[0]) ? args[0] : args) as [{ host?: string; path?: string } | undefined]
    if (to?.path === undefined && to?.host !== '127.0.0.1') {
      rejected.push(String(to?.host))
      throw new Error(`a connection to ${to?.host} is not allowed`)
    }
    return connect.apply(this, args as never)
  } as typeof connect
  return {
    rejected,
    restore: () => {
      Socket.prototype.connect = connect
    },
  }
}
