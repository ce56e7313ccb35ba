import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serverAccount } from '../../src/dev/postgres-binaries.ts'
import { end, findSystemProgram, freePorts, hasEnded, start } from './processes.ts'
import { untilAnswers } from './wait.ts'

const CONFIG = join(import.meta.dirname, '../deployment/haproxy.cfg')

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

/** HAProxy with the configuration that the operator's guide shows, but for its addresses. */
export async function startHaproxy(directory: string, ports: [number, number]): Promise<Balancer> {
  const [port, watchPort] = await freePorts(2)
  const config = replaceAll(readFileSync(CONFIG, 'utf8'), {
    'bind :8080': `bind 127.0.0.1:${port}`,
    '10.0.0.11:3000': `127.0.0.1:${ports[0]}`,
    '10.0.0.12:3000': `127.0.0.1:${ports[1]}`,
  })
  const watch = `frontend watch
    bind 127.0.0.1:${watchPort}
    monitor-uri /both-serve
    monitor fail if { nbsrv(api) lt 2 }
`
  const file = join(directory, 'haproxy.cfg')
  writeFileSync(file, `${config}\n${watch}`)
  const child = start(findSystemProgram('haproxy') as string, ['-db', '-q', '-f', file], {
    ...serverAccount(),
    cwd: '/',
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const url = `http://127.0.0.1:${port}`
  const isGone = () => hasEnded(child)
  await untilAnswers(`${url}/livez`, isGone)
  return {
    url,
    untilBothServe: () => untilAnswers(`http://127.0.0.1:${watchPort}/both-serve`, isGone),
    stop: async () => void (await end(child, 'SIGKILL')),
  }
}

/** Throws when one of `changes` is not in `text`: the trial would run with another configuration than it says. */
export function replaceAll(text: string, changes: Record<string, string>): string {
  for (const [from, to] of Object.entries(changes)) {
    if (!text.includes(from)) throw new Error(`The configuration has no "${from}"`)
    text = text.replaceAll(from, to)
  }
  return text
}
