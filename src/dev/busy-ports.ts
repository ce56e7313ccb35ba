import { once } from 'node:events'
import { createServer } from 'node:net'
import { needsCheckoutDatabase } from './checkout-database.ts'

/** The search for free ports starts near the defaults 3000 to 3002, so that the suggestion is easy to remember. */
const FIRST_FREE_PORT = 3010
const PORTS_STEP = 10

/**
 * Exits with one message if another program listens on a port that the service or the demo's console needs. Call it
 * before the database starts, so that no database server is left running.
 */
export async function exitIfPortsAreBusy(): Promise<void> {
  const { HOST, PORT, OPS_HOST, OPS_PORT, CONSOLE_HOST, CONSOLE_PORT, npm_lifecycle_event: script } = process.env
  const listeners = [
    { name: 'PORT', host: HOST || '127.0.0.1', port: Number(PORT || 3000) },
    { name: 'OPS_PORT', host: OPS_HOST || '127.0.0.1', port: Number(OPS_PORT || 3001) },
    { name: 'CONSOLE_PORT', host: CONSOLE_HOST || '127.0.0.1', port: Number(CONSOLE_PORT || 3002) },
  ].slice(0, needsCheckoutDatabase() ? 3 : 2)
  const busy = await busyPorts(listeners)
  if (busy.length === 0) return
  let free = listeners
  for (let first = FIRST_FREE_PORT; (await busyPorts(free)).length > 0; first += PORTS_STEP)
    free = listeners.map((listener, index) => ({ ...listener, port: first + index }))
  const list = new Intl.ListFormat('en-GB').format(busy.map(String))
  const taken = busy.length === 1 ? `Port ${list} is` : `Ports ${list} are`
  const settings = free.map(({ name, port }) => `${name}=${port}`).join(' ')
  console.error(`${taken} in use by another program. Run ${settings} ${script === 'dev' ? 'npm run dev' : 'npm start'}`)
  process.exit(1)
}

/**
 * Returns the ports on which another program listens. The service itself reports every other error about a port or
 * host.
 */
async function busyPorts(listeners: { host: string; port: number }[]): Promise<number[]> {
  const busy: number[] = []
  for (const { host, port } of listeners) {
    const server = createServer().listen({ host, port })
    try {
      await once(server, 'listening')
      await once(server.close(), 'close')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') busy.push(port)
    }
  }
  return busy
}
