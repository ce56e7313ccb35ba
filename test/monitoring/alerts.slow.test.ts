import { describe, expect, it } from 'vitest'
import { has } from '../guides/interpreters.ts'
import { ROOT, runToEnd } from '../support/processes.ts'

// Debian’s package `prometheus` contains promtool.
describe.runIf(has('promtool', { mustHave: true }))('the sample alerts', () => {
  const promtool = (...args: string[]) => runToEnd('promtool', args, { cwd: ROOT })

  it('promtool accepts the sample alert rules and the Prometheus configuration', async () => {
    const rules = await promtool('check', 'rules', 'src/operator/monitoring/alerts.yml')
    const config = await promtool('check', 'config', 'src/operator/monitoring/prometheus.yml')
    expect([rules.code, config.code], rules.stderr + config.stderr).toEqual([0, 0])
  })

  it.each([
    [
      'unreachable instances and database servers, full disks, a missing job, and responses with 503 and 500',
      'instance-alerts.yml',
    ],
    ['delayed and disabled webhooks, and webhooks to private addresses', 'webhook-alerts.yml'],
    ['unpaid orders, a silent acquirer, open exceptions, refunds and disputes, and slow creates', 'payment-alerts.yml'],
  ])('the sample alerts fire only for %s', async (_what, file) => {
    const { code, stdout, stderr } = await promtool('test', 'rules', `test/monitoring/${file}`)
    expect(code, stdout + stderr).toBe(0)
  })
})
