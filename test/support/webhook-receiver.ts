import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Received = { path: string; method: string; headers: IncomingHttpHeaders; body: string; at: number }

export type Receiver = Awaited<ReturnType<typeof startReceiver>>

/** Receives the service's requests. A function in `responses`, by path, sends the response; the default is 200. */
export async function startReceiver() {
  const received: Received[] = []
  const responses = new Map<string, (response: ServerResponse, count: number) => void>()
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const { url: path = '', method = '', headers } = request
      received.push({ path, method, headers, body, at: performance.now() })
      const result = responses.get(path.split('?')[0] ?? '')
      if (result) result(response, received.filter((one) => one.path === path).length)
      else response.end('thanks')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    responses,
    to: (path: string) => received.filter((one) => one.path.split('?')[0] === path),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
