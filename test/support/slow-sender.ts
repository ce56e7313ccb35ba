import type { Socket } from 'node:net'

const TRICKLE_MS = 500

/** Sends `start`, then `more` repeatedly until the connection is closed. */
export function trickle(socket: Socket, start: string, more: string): void {
  socket.write(start)
  const timer = setInterval(() => socket.writable && socket.write(more), TRICKLE_MS)
  socket.once('close', () => clearInterval(timer))
}
