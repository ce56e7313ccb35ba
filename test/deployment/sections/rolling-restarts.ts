import { setTimeout as sleep } from 'node:timers/promises'
import { startHaproxy } from '../../support/haproxy.ts'
import { type Answer, createHttpClient, type Request, tally } from '../../support/http-client.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { createRequest } from '../../support/requests.ts'
import { addSettlements, longList, SHORT_LIST_ROWS, shortList } from '../../support/settlements.ts'
import { newTenant } from '../../support/tenants.ts'
import { progress } from '../../support/workspace.ts'
import { type Check, type Deployment, startInstance } from '../deployment.ts'

const RESTARTS = 20
const DRAIN_SECONDS = '2'
/** Clients that create an intent after the other, and ask for the short list after every fourth. */
const CLIENTS = 8
const CREATES_PER_LIST = 4
const PAUSE_MS = 20
/** Long enough to be streamed, and to be under way when an instance is told to end. */
const LONG_LIST_ROWS = 20_000
const LONG_LIST_PAUSE_MS = 400

/** Two instances behind a balancer are restarted in turn while clients go on: no request may fail. */
export async function rollingRestarts(deployment: Deployment): Promise<Check[]> {
  const { url, db } = await deployment.createDatabase('rolling_restarts')
  await runBuiltOps(deployment.programs.ops, { DATABASE_URL: url }, 'migrate')
  const { merchant, partner } = await newTenant(db)
  const create = createRequest(merchant)
  await addSettlements(db, merchant.mid, LONG_LIST_ROWS)

  const environment = {
    DATABASE_URL: url,
    SHUTDOWN_DRAIN_SECONDS: DRAIN_SECONDS,
    TRUST_PROXY: '127.0.0.1',
  }
  const instances = [await startInstance(deployment, environment), await startInstance(deployment, environment)]
  const [one, two] = instances.map(({ port }) => port) as [number, number]
  const balancer = await startHaproxy(deployment.directory, [one, two])
  await balancer.untilBothServe()

  const creates: Answer[] = []
  const lists: (Answer & { rows: number; expected: number })[] = []
  const client = createHttpClient({ maxSockets: CLIENTS + 1 })
  let longestMs = 0
  let going = true

  const timed = async (request: Request) => {
    const answer = await client.send(balancer.url, request)
    longestMs = Math.max(longestMs, answer.tookMs)
    return answer
  }
  const list = async (request: Request, expected: number) => {
    const answer = await timed(request)
    lists.push({ ...answer, text: '', rows: countRows(answer), expected })
  }
  const customer = async () => {
    for (let i = 1; going; i++) {
      creates.push(await timed(create))
      if (i % CREATES_PER_LIST === 0) await list(shortList(partner, merchant.mid), SHORT_LIST_ROWS)
      await sleep(PAUSE_MS)
    }
  }
  const accountant = async () => {
    while (going) {
      await list(longList(partner, merchant.mid), LONG_LIST_ROWS)
      await sleep(LONG_LIST_PAUSE_MS)
    }
  }
  const traffic = Promise.all([accountant(), ...Array.from({ length: CLIENTS }, customer)])

  const exitCodes: (number | null)[] = []
  for (let restart = 0; restart < RESTARTS; restart++) {
    if (restart % 5 === 0) progress(`rolling-restarts: ${restart} of ${RESTARTS}`)
    const turn = restart % instances.length
    const instance = instances[turn] as (typeof instances)[number]
    exitCodes.push(await instance.stop())
    instances[turn] = await startInstance(deployment, environment, instance.port)
    await balancer.untilBothServe()
  }
  going = false
  await traffic
  client.close()
  await Promise.all(instances.map((instance) => instance.stop()))

  const { rows } = await db.query<{ n: number }>('select count(*)::int as n from payment_intents')
  await db.end()
  const stored = rows[0]?.n
  const created = creates.filter(({ status }) => status === 200)
  const orderIds = new Set(created.map(({ text }) => JSON.parse(text).data.orderId))
  const answeredLists = lists.filter(({ status }) => status === 200)
  const wrongLists = answeredLists.filter(({ rows, expected }) => rows !== expected)
  return [
    {
      promise: `${RESTARTS} restarts under load: no request fails`,
      found: `${creates.length} creates (${tally(creates)}), ${lists.length} lists (${tally(lists)})`,
      kept: [...creates, ...lists].every(({ status }) => status === 200),
    },
    {
      promise: 'every list is whole, streamed ones too',
      found: `${wrongLists.length} of ${answeredLists.length} with missing rows`,
      kept: wrongLists.length === 0,
    },
    {
      promise: 'every intent that was answered is stored, once',
      found: `${orderIds.size} answered, ${stored} stored`,
      kept: stored === orderIds.size && orderIds.size === created.length,
    },
    {
      promise: 'each instance ends by itself, with 0',
      found: `${exitCodes.filter((code) => code === 0).length} of ${RESTARTS}`,
      kept: exitCodes.every((code) => code === 0),
    },
    { promise: 'longest wait for an answer', found: `${Math.round(longestMs)} ms`, kept: true },
  ]
}

function countRows({ status, text }: Answer): number {
  return status === 200 ? JSON.parse(text).data.length : 0
}
