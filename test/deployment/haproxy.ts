import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serverAccount } from '../../src/dev/postgres-binaries.ts'
import { freePort, start } from '../bench/processes.ts'
import { findSystemProgram } from './deployment.ts'
import { until, untilAnswers } from './wait.ts'

const CONFIG = join(import.meta.dirname, 'haproxy.cfg')

export type Balancer = {
  url: string
  /** Waits until the balancer itself takes both instances for able to serve. */
  untilBothServe: () => Promise<void>
}

/** HAProxy with the configuration that the README shows, its addresses apart. */
export async function startHaproxy(directory: string, ports: [number, number]): Promise<Balancer> {
  const port = await freePort()
  const watchPort = await freePort()
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
  const hasEnded = () => child.exitCode !== null
  await until('HAProxy listened', () => untilAnswers(`${url}/livez`, hasEnded).then(() => true))
  return { url, untilBothServe: () => untilAnswers(`http://127.0.0.1:${watchPort}/both-serve`, hasEnded) }
}

/** Throws when one of `changes` is not in `text`: the trial would run with another configuration than it says. */
export function replaceAll(text: string, changes: Record<string, string>): string {
  for (const [from, to] of Object.entries(changes)) {
    if (!text.includes(from)) throw new Error(`The configuration has no "${from}"`)
    text = text.replaceAll(from, to)
  }
  return text
}
