import { describe, expect, it } from 'vitest'
import { has } from '../guides/interpreters.ts'
import { ROOT, runToEnd } from '../support/processes.ts'

// promtool is part of Debian's package `prometheus`.
describe.runIf(has('promtool', { mustHave: true }))('alerts.yml', () => {
  const promtool = (...args: string[]) => runToEnd('promtool', args, { cwd: ROOT })

  it('loads into Prometheus with the sample configuration', async () => {
    const rules = await promtool('check', 'rules', 'src/operator/monitoring/alerts.yml')
    const config = await promtool('check', 'config', 'src/operator/monitoring/prometheus.yml')
    expect([rules.code, config.code], rules.stderr + config.stderr).toEqual([0, 0])
  })

  it.each([
    ['unavailable instances and database servers, and responses with 503 and 500', 'instance-alerts.yml'],
    ['delayed webhooks, disabled endpoints and private addresses', 'webhook-alerts.yml'],
    ['unpaid orders, a silent acquirer, open exceptions and slow payments', 'payment-alerts.yml'],
  ])('fires for %s, and for nothing else', async (_what, file) => {
    const { code, stdout, stderr } = await promtool('test', 'rules', `test/monitoring/${file}`)
    expect(code, stdout + stderr).toBe(0)
  })
})
