import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Balancer, hasHaproxy, startHaproxy } from '../support/haproxy.ts'
import { createHttpClient, tally } from '../support/http-client.ts'
import { createRequest, FORM } from '../support/requests.ts'
import { CREATE, unique } from '../support/service.ts'
import { startTarget } from './target.ts'

const target = startTarget()

const ATTACKERS = 8
const ATTACKS_EACH = 24
const INNOCENT_CLIENTS = 8
/** Longest wait for an answer before the end of the request is sent. */
const ANSWER_LIMIT_MS = 2_000
/** How long after the end of its request an attacker listens for more answers. */
const LEAVE_MS = 50

describe.skipIf(!hasHaproxy())('connections that HAProxy shares among clients', () => {
  let balancer: Balancer
  const directory = mkdtempSync(join(tmpdir(), 'shared-connections-'))

  beforeAll(async () => {
    // HAProxy may run as another user.
    await chmod(directory, 0o755)
    balancer = await startHaproxy(directory, [target.server.port, target.server.port])
    await balancer.untilBothServe()
  })
  afterAll(async () => {
    await balancer?.stop()
    rmSync(directory, { recursive: true })
  })

  const create = () => createRequest(target, { order_id: unique('o') })

  it('bring nobody an answer to the request of another client, however that one ends', async () => {
    const clients = Array.from({ length: INNOCENT_CLIENTS }, () => createHttpClient({ maxSockets: 1 }))
    let attacking = true
    const innocent = clients.map(async (client) => {
      const answers = []
      while (attacking) answers.push(await client.send(balancer.url, create()))
      return answers
    })
    const attackers = Array.from({ length: ATTACKERS }, async (_, attacker) => {
      const statuses = []
      for (let i = 0; i < ATTACKS_EACH; i++) statuses.push(...(await attack(attacker + i)))
      return statuses
    })
    const attacked = (await Promise.all(attackers)).flat()
    attacking = false
    const answers = (await Promise.all(innocent)).flat()
    for (const client of clients) client.close()

    // Each attack is one request, and gets one answer at most: its own.
    expect(attacked.length).toBeLessThanOrEqual(ATTACKERS * ATTACKS_EACH)
    const own = attacked.filter((status) => [200, 400, 401, 404, 405].includes(status)).length
    expect(own).toBeGreaterThan((ATTACKERS * ATTACKS_EACH) / 2)
    // A busy machine may refuse some in earnest, by 503.
    const others = answers.filter(({ status }) => status !== 200 && status !== 503)
    expect(tally(others)).toBe('')
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(answers.length / 2)
  }, 90_000)

  /** Requests that are answered before their body has come, from somebody without credentials. */
  const early = [`POST /nowhere`, `PUT ${CREATE}`, `POST ${CREATE}`, 'GET /livez', 'GET /readyz', 'HEAD /livez']
  /** What Node.js refuses in a trailer, and what it refuses in a body. */
  const ends = ['0\r\nContent-Length: 5\r\n\r\n', '0\r\nTransfer-Encoding: chunked\r\n\r\n']

  /** Sends the `i`th kind of attack, and returns the statuses that came back. */
  async function attack(i: number): Promise<number[]> {
    const start = early[i % early.length] as string
    const end = ends[Math.floor(i / early.length) % ends.length] as string
    const socket = connect(Number(new URL(balancer.url).port), '127.0.0.1')
    socket.setNoDelay(true).on('error', () => undefined)
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
    })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(
      `${start} HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n`,
    )
    await Promise.race([once(socket, 'data'), closed, sleep(ANSWER_LIMIT_MS)])
    socket.write(end)
    socket.setTimeout(LEAVE_MS, () => socket.destroy())
    await closed
    return [...text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status))
  }
})
