import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LoadRequest } from '../../bench/load.ts'
import { newMerchantRequest, newPartnerRequest } from '../../bench/tenants.ts'
import { type Check, type Deployment, ops } from '../deployment.ts'
import { type Instance, startInstance } from '../instance.ts'
import { send } from '../requests.ts'

/** Contract B5: what an instance knows of keys, merchants and links is at most this old. */
const LIMIT_MS = 5_000
const POLL_MS = 50

/** What the operator takes away is gone on every instance, also on those that had just answered from memory. */
export async function revocation(deployment: Deployment): Promise<Check[]> {
  const { url, db } = await deployment.createDatabase('revocation')
  const environment = { DATABASE_URL: url, SHUTDOWN_DRAIN_SECONDS: '0' }
  await ops(deployment, environment, 'migrate')
  const create = await newMerchantRequest(db, 'M1')
  const disabled = await newMerchantRequest(db, 'M2')
  const list = await newPartnerRequest(db, 'M1', '01-01-2026', '31-01-2026')
  await db.end()
  const instances = await Promise.all([startInstance(deployment, environment), startInstance(deployment, environment)])

  const takeAway = async (promise: string, request: LoadRequest, statusCode: number, command: string[]) => {
    const polls = instances.map((instance) => untilAnswered(instance, request, statusCode))
    await Promise.all(polls.map(({ served }) => served))
    // Counted from before the command starts, which is longer than from its commit.
    const takenAt = performance.now()
    await ops(deployment, environment, ...command)
    const ages = await Promise.all(polls.map(({ refused }) => refused.then((at) => at - takenAt)))
    const found = ages.map((age) => (Number.isFinite(age) ? `${Math.round(age)} ms` : 'never')).join(' and ')
    return {
      promise: `${promise}: ${statusCode} within 5 s on both`,
      found,
      kept: ages.every((age) => age <= LIMIT_MS),
    }
  }
  const checks = [
    await takeAway('a revoked key', create, 401, ['keys', 'revoke', '--public-key', publicKeyOf(create)]),
    await takeAway('a cut link', list, 403, ['partners', 'unlink', '--pid', 'BENCH_PARTNER', '--mid', 'M1']),
    await takeAway('a disabled merchant', disabled, 403, ['merchants', 'disable', '--mid', 'M2']),
  ]
  await Promise.all(instances.map((instance) => instance.stop()))
  return checks
}

/** Asks over and over: `served` ends with the first success, `refused` answers the moment of the first `statusCode`. */
function untilAnswered({ url }: Instance, request: LoadRequest, statusCode: number) {
  const agent = new Agent({ keepAlive: true })
  let tellServed: (() => void) | undefined
  const served = new Promise<void>((resolve) => {
    tellServed = resolve
  })
  const refused = (async () => {
    const deadline = performance.now() + 4 * LIMIT_MS
    while (performance.now() < deadline) {
      const answer = await send(url, request, agent)
      const answeredAt = performance.now()
      if (answer.statusCode === 200) tellServed?.()
      else if (answer.statusCode === statusCode) return answeredAt
      else throw new Error(`${url}${request.path} answered ${answer.statusCode}: ${answer.text}`)
      await sleep(POLL_MS)
    }
    return Number.POSITIVE_INFINITY
  })().finally(() => agent.destroy())
  return { served: Promise.race([served, refused]), refused }
}

function publicKeyOf({ headers }: LoadRequest): string {
  const [publicKey = ''] = Buffer.from(headers.authorization?.replace('Basic ', '') ?? '', 'base64')
    .toString()
    .split(':')
  return publicKey
}
