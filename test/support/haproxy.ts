import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serverAccount } from '../../src/dev/postgres-binaries.ts'
import { end, findSystemProgram, freePorts, hasEnded, ROOT, start } from './processes.ts'
import { untilListening } from './wait.ts'

export const HAPROXY_CONFIG = join(ROOT, 'src/operator/deploy/haproxy.cfg')
/** The address of no existing proxy, so that forwarded headers are not trusted. */
const NO_PROXY = '192.0.2.1'

/** Whether tests can run HAProxy. Without it they are skipped with a message, but CI must not pass without them. */
export function hasHaproxy(): boolean {
  if (findSystemProgram('haproxy') !== undefined) return true
  const missing = 'No HAProxy: install the package haproxy'
  if (process.env.CI === 'true') throw new Error(missing)
  console.warn(`${missing}. Skipped: what needs a real proxy`)
  return false
}

export type Balancer = {
  url: string
  opsUrl: string
  stop: () => Promise<void>
  /** Waits until the health checks of the balancer find this many instances ready. */
  untilServe: (instances: number) => Promise<void>
}

type Instances = { ports: number[]; opsPort?: number; trustProxy?: string }

/** Starts HAProxy with the shipped configuration in front of instances on these ports of 127.0.0.1. */
export async function startHaproxy(
  directory: string,
  { ports, opsPort: opsPortOfAll = 1, trustProxy = NO_PROXY }: Instances,
): Promise<Balancer> {
  const [port, opsPort, watchPort] = (await freePorts(3)) as [number, number, number]
  const config = replaceAll(readFileSync(HAPROXY_CONFIG, 'utf8'), {
    'bind ":${PORT}"': `bind 127.0.0.1:${port}`,
    'server one 127.0.0.1:3101': ports.map((one) => `server on${one} 127.0.0.1:${one}`).join('\n    '),
    'server one 127.0.0.1:13101': `server one 127.0.0.1:${opsPortOfAll}`,
  }).replace(/^ *server (two|three|four) .*\n/gm, '')
  const file = join(directory, `haproxy-${port}.cfg`)
  writeFileSync(file, config + watchOf(watchPort))
  const child = start(findSystemProgram('haproxy') as string, ['-db', '-q', '-f', file], {
    ...serverAccount(),
    cwd: '/',
    env: { PATH: process.env.PATH, OPS_PORT: `${opsPort}`, TRUST_PROXY: trustProxy },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const url = `http://127.0.0.1:${port}`
  const isGone = () => hasEnded(child)
  await untilListening(`${url}/livez`, isGone)
  return {
    url,
    opsUrl: `http://127.0.0.1:${opsPort}`,
    stop: async () => void (await end(child, 'SIGKILL')),
    untilServe: (count) => untilListening(`http://127.0.0.1:${watchPort}/serve/${count}`, isGone),
  }
}

/** Responds to `/serve/2` with 200 if exactly two instances are ready, and so on. */
function watchOf(port: number): string {
  const responses = [1, 2, 3].map(
    (count) => `    http-request return status 200 if { path /serve/${count} } { nbsrv(api) ${count} }\n`,
  )
  return `\nfrontend watch\n    bind 127.0.0.1:${port}\n${responses.join('')}    http-request return status 503\n`
}

/** Throws if `text` lacks one of `changes`, because the test would then run with an unexpected configuration. */
function replaceAll(text: string, changes: Record<string, string>): string {
  for (const [from, to] of Object.entries(changes)) {
    if (!text.includes(from)) throw new Error(`The configuration has no "${from}"`)
    text = text.replaceAll(from, to)
  }
  return text
}
