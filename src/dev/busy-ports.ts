import { once } from 'node:events'
import { createServer } from 'node:net'

/** The search for free ports starts next to the defaults 3000 and 3001, so that the suggestion is easy to remember. */
const FIRST_FREE_PORT = 3002

/**
 * Exits with one message if another program listens on a port that the service needs. Call it before the database
 * starts, so that no database server is left running.
 */
export async function exitIfPortsAreBusy(): Promise<void> {
  const { HOST, PORT, OPS_HOST, OPS_PORT, npm_lifecycle_event: script } = process.env
  const host = HOST || '127.0.0.1'
  const opsHost = OPS_HOST || '127.0.0.1'
  const busy: number[] = []
  if (await isBusy(host, Number(PORT || 3000))) busy.push(Number(PORT || 3000))
  if (await isBusy(opsHost, Number(OPS_PORT || 3001))) busy.push(Number(OPS_PORT || 3001))
  if (busy.length === 0) return
  let free = FIRST_FREE_PORT
  while ((await isBusy(host, free)) || (await isBusy(opsHost, free + 1))) free += 2
  const taken = busy.length === 1 ? `Port ${busy[0]} is` : `Ports ${busy.join(' and ')} are`
  const command = `PORT=${free} OPS_PORT=${free + 1} ${script === 'dev' ? 'npm run dev' : 'npm start'}`
  console.error(`${taken} in use by another program. Run ${command}`)
  process.exit(1)
}

/**
 * Returns whether another program listens on the port. The service itself reports every other error about a port or
 * host.
 */
async function isBusy(host: string, port: number): Promise<boolean> {
  const server = createServer().listen({ host, port })
  try {
    await once(server, 'listening')
    await once(server.close(), 'close')
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
  }
}
