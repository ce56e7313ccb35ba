import type { OutgoingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect } from 'vitest'
import { ERROR_CODES, type ErrorCode } from '../../src/errors.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { createHttpClient } from '../support/http-client.ts'
import { openPool } from '../support/postgres-server.ts'
import { sendWithRetries, statusRequest } from '../support/requests.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { ACQUIRER_SECRETS, type Key, newMerchant, newPartner } from '../support/service.ts'

export const JSON_TYPE = 'application/json'

/** How long an exchange on a socket may take; the service itself closes a request after 10 s. */
const EXCHANGE_LIMIT_MS = 15_000

/** Pause between two pieces of a request: long enough for the service to respond to the part that it has. */
const PIECE_PAUSE_MS = 10

type Bytes = Uint8Array | string

export type WireResponse = { status: number; headers: Record<string, unknown>; text: string }

export type Target = {
  db: Database
  mid: string
  key: Key
  partner: { pid: string; key: Key }
  server: ServerProcess
  post: (path: string, body: Uint8Array | string, headers: OutgoingHttpHeaders) => Promise<WireResponse>
  /**
   * Sends bytes unchanged, a list of them piece by piece, and returns the bytes received until the connection was
   * closed: by the service, or by a client that disconnects, normally or by a reset, after `waitMs` without a byte
   * from the service.
   */
  raw: (
    bytes: Bytes | Bytes[],
    leaving?: { waitMs?: number; reset?: boolean; pauseMs?: number },
  ) => Promise<WireResponse[]>
}

/**
 * The service as a separate process, with a merchant and a partner, for the tests of the calling file. After them, that
 * process must still run and respond.
 */
export function startTarget(options: { openFiles?: number } = {}): Target {
  const target = {} as Target
  const client = createHttpClient()

  beforeAll(async () => {
    const database = await createTestDatabase()
    const db = openPool(database.url)
    const { mid, key } = await newMerchant(db)
    const partner = await newPartner(db, mid)
    const server = await startServerProcess(
      database.url,
      { ACQUIRER_SECRETS: ACQUIRER_SECRETS.join(), RATE_LIMIT_PER_SECOND: '1000000' },
      options,
    )
    Object.assign(target, { db, mid, key, partner, server })
  })

  afterAll(async () => {
    const { server, db } = target
    const { exitCode, signalCode } = server.child
    const alive = await client.send(server.url, statusRequest(target, 'none'))
    client.close()
    await server.stop()
    await db.end()
    expect({ exitCode, signalCode, alive: alive.status }).toEqual({ exitCode: null, signalCode: null, alive: 404 })
    // On a busy machine even the database is slow.
    const isLate = ({ error }: Record<string, unknown>) => /time-?out/i.test(String((error as Error)?.message))
    const lines = server.log.map((line) => JSON.parse(line))
    expect(lines.filter((line) => (line.level === 'error' || line.level === 'fatal') && !isLate(line))).toEqual([])
  })

  target.post = async (path, body, headers) => {
    // Generated requests arrive without pause, and a busy machine temporarily rejects some of them.
    const request = { method: 'POST' as const, path, headers, body }
    const { status, fault, ...response } = await sendWithRetries(client, target.server.url, request)
    if (status === undefined) throw new Error(fault)
    return { ...response, status }
  }

  target.raw = (bytes, { waitMs, reset, pauseMs = PIECE_PAUSE_MS } = {}) =>
    new Promise((resolve, reject) => {
      const pieces = [bytes].flat()
      const socket = connect(target.server.port, '127.0.0.1', async () => {
        for (const [i, piece] of pieces.entries()) {
          if (i > 0) await sleep(pauseMs)
          if (socket.writable) socket.write(piece)
        }
      }).setNoDelay(true)
      const chunks: Buffer[] = []
      const late = setTimeout(() => {
        reject(
          new Error(
            `neither a response nor a closed connection: ${JSON.stringify(pieces.map((piece) => Buffer.from(piece).toString('latin1')))}`,
          ),
        )
        socket.destroy()
      }, EXCHANGE_LIMIT_MS)
      if (waitMs) socket.setTimeout(waitMs, () => (reset ? socket.resetAndDestroy() : socket.end()))
      socket.on('data', (chunk) => chunks.push(chunk))
      // A server that closes while bytes still arrive resets the connection, which is a valid way to close it.
      socket.on('error', () => undefined)
      socket.on('close', () => {
        clearTimeout(late)
        resolve(readResponses(Buffer.concat(chunks)))
      })
    })

  return target
}

/** Throws unless the response is a whole envelope, with exactly the keys and the code of its status, and no 5xx. */
export function expectEnvelope({ status, headers, text }: WireResponse): void {
  const body = JSON.parse(text)
  const keys = Object.keys(body).join()
  // The response of checkPaymentStatus about an order that a generated create has stored.
  const isPending = status === 200 && body.txnStatus === 'PENDING'
  const ofSuccess = isPending ? 'status,statusCode,txnStatus,msg' : 'status,statusCode,msg,data'
  const isEnvelope =
    keys === (status === 200 ? ofSuccess : 'status,statusCode,msg') &&
    body.status === (status === 200 && !isPending) &&
    body.statusCode === status &&
    typeof body.msg === 'string' &&
    body.msg !== '' &&
    headers['content-type'] === 'application/json; charset=utf-8' &&
    (status === 200 || ERROR_CODES[headers['x-error-code'] as ErrorCode] === status) &&
    typeof headers['x-request-id'] === 'string' &&
    headers['cache-control'] === 'no-store'
  if (!isEnvelope || status >= 500) throw new Error(`not an envelope: ${JSON.stringify({ status, headers, text })}`)
}

/** The consecutive responses in `bytes`. A response that is cut off is included as far as it was received. */
function readResponses(bytes: Buffer): WireResponse[] {
  const responses: WireResponse[] = []
  let rest = bytes.toString('latin1')
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n')
    const [statusLine = '', ...lines] = rest.slice(0, end < 0 ? undefined : end).split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1] ?? Number.NaN)
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    )
    rest = end < 0 ? '' : rest.slice(end + 4)
    if (status === 100) continue
    const length = Number(headers['content-length'])
    responses.push({ status, headers, text: Buffer.from(rest.slice(0, length), 'latin1').toString('utf8') })
    rest = rest.slice(length)
  }
  return responses
}
