import { setTimeout as sleep } from 'node:timers/promises'
import { createHttpClient, type Request } from '../../support/http-client.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { createRequest } from '../../support/requests.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { shortList } from '../../support/settlements.ts'
import { newMerchant, newTenant } from '../../support/tenants.ts'
import { type Check, type Deployment, startInstance } from '../deployment.ts'

/** What an instance knows of keys, merchants and links is at most this old. */
const LIMIT_MS = 5_000
const POLL_MS = 50

/** What the operator takes away is gone on every instance, also on those that had just answered from memory. */
export async function revocation(deployment: Deployment): Promise<Check[]> {
  const { url, db } = await deployment.createDatabase('revocation')
  const environment = { DATABASE_URL: url, SHUTDOWN_DRAIN_SECONDS: '0' }
  const ops = (...command: string[]) => runBuiltOps(deployment.programs.ops, environment, ...command)
  await ops('migrate')
  const { merchant, partner } = await newTenant(db)
  const disabled = await newMerchant(db)
  await db.end()
  const instances = await Promise.all([startInstance(deployment, environment), startInstance(deployment, environment)])

  const takeAway = async (promise: string, request: Request, statusCode: number, ...command: string[]) => {
    const polls = instances.map((instance) => untilAnswered(instance, request, statusCode))
    await Promise.all(polls.map(({ served }) => served))
    // Counted from before the command starts, which is longer than from its commit.
    const takenAt = performance.now()
    await ops(...command)
    const ages = await Promise.all(polls.map(({ refused }) => refused.then((at) => at - takenAt)))
    const found = ages.map((age) => (Number.isFinite(age) ? `${Math.round(age)} ms` : 'never')).join(' and ')
    return {
      promise: `${promise}: ${statusCode} within 5 s on both`,
      found,
      kept: ages.every((age) => age <= LIMIT_MS),
    }
  }
  const checks = [
    await takeAway(
      'a revoked key',
      createRequest(merchant),
      401,
      'keys',
      'revoke',
      '--public-key',
      merchant.key.publicKey,
    ),
    await takeAway(
      'a cut link',
      shortList(partner, merchant.mid),
      403,
      'partners',
      'unlink',
      '--pid',
      partner.pid,
      '--mid',
      merchant.mid,
    ),
    await takeAway('a disabled merchant', createRequest(disabled), 403, 'merchants', 'disable', '--mid', disabled.mid),
  ]
  await Promise.all(instances.map((instance) => instance.stop()))
  return checks
}

/** Asks over and over: `served` ends with the first success, `refused` gives the moment of the first `statusCode`. */
function untilAnswered({ url }: ServerProcess, request: Request, statusCode: number) {
  const client = createHttpClient()
  let tellServed: (() => void) | undefined
  const served = new Promise<void>((resolve) => {
    tellServed = resolve
  })
  const refused = (async () => {
    const deadline = performance.now() + 4 * LIMIT_MS
    while (performance.now() < deadline) {
      const answer = await client.send(url, request)
      const answeredAt = performance.now()
      if (answer.status === 200) tellServed?.()
      else if (answer.status === statusCode) return answeredAt
      else throw new Error(`${url}${request.path} answered ${answer.status}: ${answer.text}`)
      await sleep(POLL_MS)
    }
    return Number.POSITIVE_INFINITY
  })().finally(() => client.close())
  return { served: Promise.race([served, refused]), refused }
}
