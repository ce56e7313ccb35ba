import { describe, expect, it } from 'vitest'
import { callJson } from '../../src/acquirer/call-json.ts'
import { listen } from '../support/listener.ts'
import { until } from '../support/wait.ts'

const UPGRADE = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'
const call = { method: 'POST', headers: {}, body: {}, timeoutMs: 5_000, maxBytes: 1_000 } as const

/** An error that no listener takes ends the process; Vitest reports it as a failure of the run. */
describe('an acquirer that answers 101', () => {
  it.each([
    ['holds the connection', undefined],
    ['resets the connection', 2],
  ])('and %s is unavailable, and no connection stays open', async (_what, resetAfterMs) => {
    const acquirer = await listen((socket) => {
      socket.write(UPGRADE)
      if (resetAfterMs !== undefined) setTimeout(() => socket.resetAndDestroy(), resetAfterMs)
    })
    await expect(callJson(`http://127.0.0.1:${acquirer.port}/`, call)).rejects.toThrow('cannot be reached')
    await until('the connection was closed', () => acquirer.sockets.every((socket) => socket.destroyed))
  })
})

describe('an acquirer that resets the connection', () => {
  it.each([
    ['a whole answer', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'],
    ['interim answers', 'HTTP/1.1 100 x\r\n\r\nHTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'],
    ['another protocol', `${UPGRADE}bytes of it`],
  ])('after any number of bytes of %s fails that call only', async (_what, answer) => {
    const acquirer = await listen((socket) => {
      socket.write(answer.slice(0, acquirer.connections - 1))
      setTimeout(() => socket.resetAndDestroy(), 2)
    })
    for (let bytes = 0; bytes <= answer.length; bytes += 1) {
      const end = await callJson(`http://127.0.0.1:${acquirer.port}/`, call).catch((error: Error) => error.message)
      expect(end).toSatisfy((one) => one === 'the acquirer cannot be reached' || one.status === 200)
    }
  })
})
