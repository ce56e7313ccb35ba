import { describe, expect, it } from 'vitest'
import { has } from '../guides/interpreters.ts'
import { ROOT, runToEnd } from '../support/processes.ts'

// Debian's package `prometheus` has promtool.
describe.runIf(has('promtool', { mustHave: true }))('the sample alerts', () => {
  const promtool = (...args: string[]) => runToEnd('promtool', args, { cwd: ROOT })

  it('promtool accepts the sample alert rules, and the configuration of Prometheus that loads them', async () => {
    const rules = await promtool('check', 'rules', 'src/operator/monitoring/alerts.yml')
    const config = await promtool('check', 'config', 'src/operator/monitoring/prometheus.yml')
    expect([rules.code, config.code], rules.stderr + config.stderr).toEqual([0, 0])
  })

  it.each([
    [
      'instances and database servers that do not answer, all of them gone, and answers of 503 and 500',
      'instance-alerts.yml',
    ],
    ['webhooks that wait, that were switched off and that lead inward', 'webhook-alerts.yml'],
    [
      'orders that nobody pays, a silent acquirer, exceptions that nobody resolves and slow intents',
      'payment-alerts.yml',
    ],
  ])('the sample alerts fire for %s, and for nothing else', async (_what, file) => {
    const { code, stdout, stderr } = await promtool('test', 'rules', `test/monitoring/${file}`)
    expect(code, stdout + stderr).toBe(0)
  })
})
