import { createServer } from 'node:net'

/** Where the search for free ports begins: beside 3000 and 3001, so that they are as easy to remember. */
const FIRST_FREE_PORT = 3002

/**
 * Ends this process with one sentence if another program listens on a port that the service needs. Before the database is
 * started, so that this takes no time and leaves nothing behind.
 */
export async function exitIfPortsAreBusy(): Promise<void> {
  const { HOST, PORT, OPS_HOST, OPS_PORT, npm_lifecycle_event: script } = process.env
  const host = HOST || '127.0.0.1'
  const opsHost = OPS_HOST || '127.0.0.1'
  const port = Number(PORT || 3000)
  const opsPort = Number(OPS_PORT || 3001)
  const busy = [...((await isBusy(host, port)) ? [port] : []), ...((await isBusy(opsHost, opsPort)) ? [opsPort] : [])]
  if (busy.length === 0) return
  let free = FIRST_FREE_PORT
  while ((await isBusy(host, free)) || (await isBusy(opsHost, free + 1))) free += 2
  const taken = busy.length === 1 ? `Port ${busy[0]} is` : `Ports ${busy.join(' and ')} are`
  const command = `PORT=${free} OPS_PORT=${free + 1} ${script === 'dev' ? 'npm run dev' : 'npm start'}`
  console.error(`${taken} in use by another program: run ${command}`)
  process.exit(1)
}

/** Other faults of a port or an address are reported by the service itself. */
function isBusy(host: string, port: number): Promise<boolean> {
  return new Promise<void>((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen({ host, port }, () => server.close(() => resolve()))
  }).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'EADDRINUSE',
  )
}
