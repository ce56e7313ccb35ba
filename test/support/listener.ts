import { createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export type Listener = { port: number; host: string; connections: number; received: string; sockets: Socket[] }

/** A TCP server that counts connections; `answer` gets the socket once the head of a request has arrived. */
export async function listen(response: (socket: Socket) => void, host = '127.0.0.1', port = 0): Promise<Listener> {
  const listener: Listener = { port, host, connections: 0, received: '', sockets: [] }
  const server = createServer((socket) => {
    listener.connections += 1
    listener.sockets.push(socket)
    socket.on('error', () => {})
    let head = ''
    socket.on('data', (chunk) => {
      listener.received += chunk
      const began = head.includes('\r\n\r\n')
      head += chunk
      if (!began && head.includes('\r\n\r\n')) response(socket)
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  onTestFinished(() => {
    for (const socket of listener.sockets) socket.destroy()
    server.close()
  })
  listener.port = (server.address() as { port: number }).port
  return listener
}

export const respondOk = (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
