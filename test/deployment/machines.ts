import { spawnSync } from 'node:child_process'
import { chownSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { type Account, serverAccount } from '../../src/dev/postgres-binaries.ts'
import { findSystemProgram, start } from '../support/processes.ts'
import { until } from '../support/wait.ts'

/** Stands for one of the machines on a network; a network namespace, so that its network can be cut and its processes are known. */
export type Machine = {
  address: string
  /** A folder of its own, which its processes may write to. */
  directory: string
  /** Starts a program on it; what it says goes to `log` in the machine's folder. */
  start: (name: string, args: string[], environment?: Record<string, string>) => void
  /** All that runs on it ends at once, as when its power fails. */
  kill: () => Promise<void>
  /** Nothing that runs on it goes on until `resume`, as when a virtual machine is paused. */
  pause: () => void
  resume: () => void
  cutNetwork: () => void
  healNetwork: () => void
}

/** What the files of this folder call the network of the machines. */
export const NETWORK = '10.0.0.'

/** For measuring networks (RFC 2544), so that no real network has it; two trials at once get different ones. */
const REAL_NETWORK = `198.18.${process.pid % 256}.`

/** The address in the trial of one that a file of this folder names. */
export const realAddress = (address: string) => address.replace(NETWORK, REAL_NETWORK)

/** Why machines cannot be had here; undefined if they can. */
export const noMachines = () => (process.getuid?.() === 0 ? undefined : 'only root may make network namespaces')

/** Machines with `addresses` on one network with this process. They are gone when this process ends, and all that runs on them. */
export function openMachines(directory: string, addresses: string[]): Machine[] {
  const namespaces: string[] = []
  // First the processes, because a namespace lives as long as they do.
  process.prependListener('exit', () => {
    for (const name of namespaces) {
      signalAll(name, 'SIGKILL')
      spawnSync('ip', ['netns', 'delete', name])
    }
  })
  const addNamespace = (name: string) => {
    ip('netns', 'add', name)
    namespaces.push(name)
    ip('-netns', name, 'link', 'set', 'dev', 'lo', 'up')
  }
  // The bridge has a namespace too: no firewall of this machine stands between the others.
  const bridge = `upi-${process.pid}-bridge`
  addNamespace(bridge)
  ip('-netns', bridge, 'link', 'add', 'bridge0', 'type', 'bridge')
  ip('-netns', bridge, 'link', 'set', 'dev', 'bridge0', 'up')
  const plugIn = (port: string, ...peer: string[]) => {
    ip('-netns', bridge, 'link', 'add', 'name', port, 'type', 'veth', 'peer', 'name', ...peer)
    ip('-netns', bridge, 'link', 'set', 'dev', port, 'master', 'bridge0', 'up')
  }
  const ownPort = `upi${process.pid}`
  plugIn('own', ownPort, 'netns', String(process.pid))
  ip('address', 'add', `${REAL_NETWORK}1/24`, 'dev', ownPort)
  ip('link', 'set', 'dev', ownPort, 'up')

  const account = serverAccount() as NonNullable<Account>
  return addresses.map((address, index) => {
    const port = `machine${index + 1}`
    const namespace = `upi-${process.pid}-${index + 1}`
    addNamespace(namespace)
    plugIn(port, 'eth0', 'netns', namespace)
    ip('-netns', namespace, 'address', 'add', `${address}/24`, 'dev', 'eth0')
    ip('-netns', namespace, 'link', 'set', 'dev', 'eth0', 'up')
    const folder = join(directory, port)
    makeFolder(folder, account)
    return {
      address,
      directory: folder,
      start: (name, args, environment) => startAs(account, { namespace, folder, name, args, environment }),
      async kill() {
        await until(`nothing ran on ${address}`, () => signalAll(namespace, 'SIGKILL') === 0)
      },
      pause: () => void signalAll(namespace, 'SIGSTOP'),
      resume: () => void signalAll(namespace, 'SIGCONT'),
      cutNetwork: () => ip('-netns', bridge, 'link', 'set', 'dev', port, 'down'),
      healNetwork: () => ip('-netns', bridge, 'link', 'set', 'dev', port, 'up'),
    }
  })
}

/** Sends `signal` to every process that `namespace` has at this moment; returns how many they are. */
function signalAll(namespace: string, signal: NodeJS.Signals): number {
  const { stdout } = spawnSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' })
  const pids = stdout.split('\n').filter(Boolean).map(Number)
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // It has just ended.
    }
  }
  return pids.length
}

type Program = {
  namespace: string
  folder: string
  name: string
  args: string[]
  environment: Record<string, string> | undefined
}

function startAs({ uid, gid }: NonNullable<Account>, { namespace, folder, name, args, environment }: Program): void {
  const log = openSync(join(folder, `${name}.log`), 'a')
  const as = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  // `ip` and `setpriv` become the program: it is our child, and no shell stands between.
  start('ip', ['netns', 'exec', namespace, ...as, findSystemProgram(name) as string, ...args], {
    cwd: '/',
    env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', HOME: folder, ...environment },
    stdio: ['ignore', log, log],
  })
  closeSync(log)
}

function makeFolder(folder: string, { uid, gid }: NonNullable<Account>): void {
  mkdirSync(folder)
  chownSync(folder, uid, gid)
}

function ip(...args: string[]): void {
  const { status, stderr, error } = spawnSync('ip', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${error?.message ?? stderr}`)
}
