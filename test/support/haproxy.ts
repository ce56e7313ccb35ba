import type { ChildProcess } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serverAccount } from '../../src/dev/postgres-binaries.ts'
import { end, findSystemProgram, freePorts, hasEnded, ROOT, start } from './processes.ts'
import { untilAnswers } from './wait.ts'

const CONFIG = join(import.meta.dirname, '../deployment/haproxy.cfg')
const COMPOSE_CONFIG = join(ROOT, 'src/balancer/haproxy.cfg')

/** Whether tests can have HAProxy; without it they are left out and say so, but CI must not pass without them. */
export function hasHaproxy(): boolean {
  if (findSystemProgram('haproxy') !== undefined) return true
  const missing = 'No HAProxy: install the package haproxy'
  if (process.env.CI === 'true') throw new Error(missing)
  console.warn(`${missing}. Skipped: what needs a real proxy`)
  return false
}

export type Balancer = {
  url: string
  stop: () => Promise<void>
  /** Waits until the balancer's own checks find both instances ready. */
  untilBothServe: () => Promise<void>
}

export type ComposeBalancer = Pick<Balancer, 'url' | 'stop'> & {
  opsUrl: string
  /** Waits until the balancer's own checks find so many instances ready. */
  untilServe: (instances: number) => Promise<void>
}

/** HAProxy with the configuration that the operator's guide shows, but for its addresses. */
export async function startHaproxy(directory: string, ports: [number, number]): Promise<Balancer> {
  const [port, watchPort] = (await freePorts(2)) as [number, number]
  const config = replaceAll(readFileSync(CONFIG, 'utf8'), {
    'bind :8080': `bind 127.0.0.1:${port}`,
    '10.0.0.11:3000': `127.0.0.1:${ports[0]}`,
    '10.0.0.12:3000': `127.0.0.1:${ports[1]}`,
  })
  const { url, isGone, stop } = await startBalancer(directory, config + watchOf(watchPort, [2]), port)
  return { url, stop, untilBothServe: () => untilAnswers(`http://127.0.0.1:${watchPort}/serve/2`, isGone) }
}

/**
 * HAProxy with the configuration of the compose file. It asks the name server on `dnsPort` for the addresses of the instances,
 * which all listen on `port` and `opsPort`.
 */
export async function startComposeHaproxy(
  directory: string,
  { port, opsPort, dnsPort, trustProxy }: { port: number; opsPort: number; dnsPort: number; trustProxy: string },
): Promise<ComposeBalancer> {
  const [frontPort, opsFrontPort, watchPort] = (await freePorts(3)) as [number, number, number]
  const config = replaceAll(readFileSync(COMPOSE_CONFIG, 'utf8'), {
    'bind ":${PORT}"': `bind 127.0.0.1:${frontPort}`,
    'bind ":${OPS_PORT}"': `bind 127.0.0.1:${opsFrontPort}`,
    '127.0.0.11:53': `127.0.0.1:${dnsPort}`,
  })
  const environment = { PORT: String(port), OPS_PORT: String(opsPort), TRUST_PROXY: trustProxy }
  const watch = watchOf(watchPort, [1, 2, 3])
  const { url, isGone, stop } = await startBalancer(directory, config + watch, frontPort, environment)
  return {
    url,
    stop,
    opsUrl: `http://127.0.0.1:${opsFrontPort}`,
    untilServe: (instances) => untilAnswers(`http://127.0.0.1:${watchPort}/serve/${instances}`, isGone),
  }
}

/** HAProxy with the configuration of the compose file, before one instance, whose address it is told. */
export async function startPublicHaproxy(
  directory: string,
  instancePort: number,
): Promise<Pick<Balancer, 'url' | 'stop'>> {
  const [port, opsPort] = (await freePorts(2)) as [number, number]
  const config = replaceAll(readFileSync(COMPOSE_CONFIG, 'utf8'), {
    'bind ":${PORT}"': `bind 127.0.0.1:${port}`,
    'bind ":${OPS_PORT}"': `bind 127.0.0.1:${opsPort}`,
    'resolvers docker resolve-prefer ipv4 init-addr none': '',
    'server-template instance 32 "api:${PORT}"': `server one 127.0.0.1:${instancePort}`,
    'server-template instance 32 "api:${OPS_PORT}"': `server one 127.0.0.1:${opsPort}`,
  })
  return startBalancer(directory, config, port, { TRUST_PROXY: '192.0.2.1' })
}

/** Tells by `/serve/2` whether exactly two instances are ready, and so on. */
function watchOf(port: number, counts: number[]): string {
  const answers = counts.map(
    (count) => `    http-request return status 200 if { path /serve/${count} } { nbsrv(api) ${count} }`,
  )
  return [
    '',
    'frontend watch',
    `    bind 127.0.0.1:${port}`,
    ...answers,
    '    http-request return status 503',
    '',
  ].join('\n')
}

async function startBalancer(directory: string, config: string, port: number, environment?: Record<string, string>) {
  const child = runHaproxy(join(directory, `haproxy-${port}.cfg`), config, environment)
  const url = `http://127.0.0.1:${port}`
  const isGone = () => hasEnded(child)
  await untilAnswers(`${url}/livez`, isGone)
  return { url, isGone, stop: async () => void (await end(child, 'SIGKILL')) }
}

/** HAProxy with `config`, which is written to `file`. */
export function runHaproxy(file: string, config: string, environment: Record<string, string> = {}): ChildProcess {
  writeFileSync(file, config)
  return start(findSystemProgram('haproxy') as string, ['-db', '-q', '-f', file], {
    ...serverAccount(),
    cwd: '/',
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** Throws when one of `changes` is not in `text`: the trial would run with another configuration than it says. */
export function replaceAll(text: string, changes: Record<string, string>): string {
  for (const [from, to] of Object.entries(changes)) {
    if (!text.includes(from)) throw new Error(`The configuration has no "${from}"`)
    text = text.replaceAll(from, to)
  }
  return text
}
