import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceAll, runHaproxy } from '../support/haproxy.ts'
import { findSystemProgram, freePort, run } from '../support/processes.ts'
import { until } from '../support/wait.ts'
import { PASSWORD } from './deployment.ts'
import { type Machine, NETWORK, openMachines, realAddress } from './machines.ts'

const read = (name: string) => readFileSync(join(import.meta.dirname, name), 'utf8')

const PATRONI = read('patroni.yml')
const ETCD = read('etcd.env')
const HAPROXY = read('haproxy-postgres.cfg')

/** As the files name them. */
const ADDRESSES = [21, 22, 23].map((last) => `${NETWORK}${last}`)

const REST_TIMEOUT_MS = 1_000
/** The database is copied, and both cores belong to others too. */
const WHOLE_WITHIN_MS = 120_000
const POLL_MS = 200

export type Node = Machine & { name: string }

type Member = { name: string; role: 'leader' | 'sync_standby' | 'replica'; state: string; timeline?: number }

export type PostgresCluster = {
  nodes: Node[]
  /** Where HAProxy takes connections for whoever is primary. */
  port: number
  primary: () => Promise<Node>
  synchronousStandby: () => Promise<Node>
  /** Waits until there is one primary, and the other nodes replicate from it, one of them synchronously. */
  untilWhole: () => Promise<void>
  /** A new machine takes the place of one that was killed: nothing of the old one is left. */
  replace: (node: Node) => Promise<void>
}

/** Three machines with PostgreSQL, Patroni and etcd, and HAProxy before them, by the files that the operator's guide shows. */
export async function startPostgresCluster(directory: string): Promise<PostgresCluster> {
  const machines = openMachines(directory, ADDRESSES.map(realAddress))
  const nodes = machines.map((machine, index): Node => ({ ...machine, name: `db${index + 1}` }))
  for (const node of nodes) {
    startEtcd(node, ETCD)
    startPatroni(node)
  }
  const port = await freePort()
  const config = replaceAll(HAPROXY, {
    'bind 127.0.0.1:5432': `bind 127.0.0.1:${port}`,
    [NETWORK]: realAddress(NETWORK),
  })
  runHaproxy(join(directory, 'haproxy-postgres.cfg'), config)

  // Asked of a whole cluster, in which every node knows it.
  const nodeWhoseRole = async (role: Member['role']) => {
    const members = (await Promise.all(nodes.map(viewOf))).flat()
    const member = members.find((it) => it.role === role)
    const found = nodes.find(({ name }) => name === member?.name)
    if (!found) throw new Error(`No node is ${role}`)
    return found
  }
  const cluster: PostgresCluster = {
    nodes,
    port,
    primary: () => nodeWhoseRole('leader'),
    synchronousStandby: () => nodeWhoseRole('sync_standby'),
    untilWhole: () =>
      until('every node was in the cluster', async () => isWhole(await Promise.all(nodes.map(viewOf))), {
        timeoutMs: WHOLE_WITHIN_MS,
        pollMs: POLL_MS,
      }),
    async replace(node) {
      for (const folder of ['data', 'etcd']) rmSync(join(node.directory, folder), { recursive: true })
      await replaceEtcdMember(node, nodes)
      startEtcd(node, replaceAll(ETCD, { 'CLUSTER_STATE=new': 'CLUSTER_STATE=existing' }))
      startPatroni(node)
    },
  }
  await cluster.untilWhole()
  return cluster
}

function startPatroni(node: Node): void {
  const { name, address, directory } = node
  const file = join(directory, 'patroni.yml')
  const config = replaceAll(PATRONI, {
    'name: db1': `name: ${name}`,
    '10.0.0.21:8008': `${address}:8008`,
    '10.0.0.21:5432': `${address}:5432`,
    [NETWORK]: realAddress(NETWORK),
    '/var/lib/postgresql/15/upi': join(directory, 'data'),
    '/var/run/postgresql': directory,
    'password: PASSWORD': `password: ${PASSWORD}`,
    // It would restart the machine that the trial runs on.
    'mode: automatic': 'mode: off',
  })
  writeFileSync(file, config)
  node.start('patroni', [file])
}

function startEtcd(node: Node, file: string): void {
  const { name, address, directory } = node
  const settings = replaceAll(file, {
    'NAME=db1': `NAME=${name}`,
    'URLS=http://10.0.0.21': `URLS=http://${address}`,
    [NETWORK]: realAddress(NETWORK),
    '/var/lib/etcd/upi': join(directory, 'etcd'),
  })
  node.start('etcd', [], Object.fromEntries(settings.match(/^\w+=.*$/gm)?.map(splitSetting) ?? []))
}

const splitSetting = (line: string) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]

/** etcd takes no member whose data are gone: the dead one leaves, and a new one of its name comes. */
async function replaceEtcdMember(node: Node, nodes: Node[]): Promise<void> {
  const endpoints = nodes.filter((it) => it !== node).map(({ address }) => `http://${address}:2379`)
  const etcdctl = (...args: string[]) =>
    run(findSystemProgram('etcdctl') as string, [`--endpoints=${endpoints}`, 'member', ...args], {
      env: { PATH: process.env.PATH, ETCDCTL_API: '3' },
    })
  const id = (await etcdctl('list'))
    .split('\n')
    .find((line) => line.includes(` ${node.name},`))
    ?.split(',')[0]
  await etcdctl('remove', id as string)
  await etcdctl('add', node.name, `--peer-urls=http://${node.address}:2380`)
}

/** The members as `node` knows them; none if it does not answer. */
async function viewOf({ address }: Node): Promise<Member[]> {
  try {
    const response = await fetch(`http://${address}:8008/cluster`, { signal: AbortSignal.timeout(REST_TIMEOUT_MS) })
    return ((await response.json()) as { members?: Member[] }).members ?? []
  } catch {
    return []
  }
}

/** Every node must see it, and see the same primary: one that was cut off remembers for a while what was before. */
function isWhole(views: Member[][]): boolean {
  const primaries = views.map((members) => members.find(({ role }) => role === 'leader'))
  return views.every(
    (members, index) =>
      members.length === ADDRESSES.length &&
      members.some(({ role }) => role === 'sync_standby') &&
      members.every(({ state, timeline }) => state === 'running' && timeline === primaries[index]?.timeline) &&
      primaries[index]?.name === primaries[0]?.name,
  )
}
