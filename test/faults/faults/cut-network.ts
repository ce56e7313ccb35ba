import { setTimeout as sleep } from 'node:timers/promises'
import { startLoad } from '../../support/load.ts'
import { type Cut, startTcpProxy } from '../../support/tcp-proxy.ts'
import { conclude, type Stage, setScene, startService } from '../stage.ts'
import { brokenHealth, type Finding } from '../verdict.ts'

const CUTS: Cut[] = ['refused', 'reset', 'held', 'swallowed']
const SERVING_MS = 1_500
/** After the short cut the first requests are still waiting on dead connections. */
const CUT_MS = [400, 3_000]

/** Cuts the network between service and PostgreSQL under load, in each of the four ways of tcp-proxy.ts. */
export async function cutNetwork({ postgres }: Stage): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const cut of CUTS) findings.push(await cutOneWay(postgres, cut))
  return findings
}

async function cutOneWay(postgres: Stage['postgres'], cut: Cut): Promise<Finding> {
  const scene = await setScene(postgres, `network_${cut}`)
  const { name, tenant } = scene
  const proxy = await startTcpProxy(postgres.port)
  const service = await startService(postgres.urlOf(name, proxy.port))
  const load = startLoad(() => service.url, tenant)
  const spans: { from: number; until: number }[] = []
  for (const cutMs of CUT_MS) {
    await sleep(SERVING_MS)
    proxy.cut(cut)
    const from = performance.now()
    await sleep(cutMs)
    await proxy.restore()
    spans.push({ from, until: performance.now() })
  }
  await sleep(SERVING_MS)
  const returns = spans.map(({ until }) => until)
  const finding = await conclude(`network ${cut}`, scene, { service, load, returns })
  proxy.close()
  const { from, until } = spans.at(-1) as { from: number; until: number }
  finding.broken.push(...brokenHealth(load.journal, from, until))
  return finding
}
