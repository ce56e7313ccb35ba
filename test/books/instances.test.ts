import { describe, expect, it } from 'vitest'
import { createInstances } from '../../src/books/instances.ts'
import { notification, notify } from '../support/acquirer.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService } from '../support/service.ts'
import { until } from '../support/wait.ts'

const SOON = { heartbeat: { firstMs: 10, intervalMs: 20 } }
const instancesOf = ({ db, clock }: TestService) => createInstances(db).list(clock.now())

describe('an instance', () => {
  it('writes down that it runs, with the rights of an installation, and at its end that it has stopped', async () => {
    const service = await startService({ limits: SOON, asServiceRole: true })
    await until('it has beaten', async () => (await instancesOf(service)).length === 1)
    service.clock.advance(60)
    const seenAt = service.clock.now()
    await until('it beats on', async () => Number((await instancesOf(service))[0]?.seenAt) === seenAt.getTime())
    const [running] = await instancesOf(service)
    expect(running).toEqual({
      instanceId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      host: expect.stringMatching(/./),
      version: '1.0.0',
      startedAt: new Date('2026-03-31T18:29:59.000Z'),
      seenAt,
      stoppedAt: null,
      refused: 0,
      lastNotificationAt: null,
      acquirersAway: [],
    })
    service.clock.advance(1)
    await service.app.close()
    expect(await instancesOf(service)).toEqual([
      { ...running, seenAt: expect.any(Date), stoppedAt: service.clock.now() },
    ])
  })

  it('tells of notifications: when one was accepted, and how many were refused on this Indian day', async () => {
    // One second before midnight in India.
    const service = await startService({ limits: SOON })
    const { mid, key } = await newMerchant(service.db)
    const { body } = await post(service.app, CREATE, intentFields(mid), key)
    expect((await notify(service, notification(body.data.orderId))).status).toBe(200)
    for (let i = 0; i < 3; i++) expect((await notify(service, notification('0'.repeat(32)))).status).toBe(404)
    const acceptedAt = service.clock.now()
    await until('it tells', async () => (await instancesOf(service))[0]?.refused === 3)
    expect((await instancesOf(service))[0]).toMatchObject({ refused: 3, lastNotificationAt: acceptedAt })
    expect(await service.metrics()).toContain(
      `payment_last_notification_timestamp_seconds ${acceptedAt.getTime() / 1000}`,
    )
    expect(await service.metrics()).toContain('payment_notifications_refused_total{status="404"} 3')
    service.clock.advance(1)
    expect((await instancesOf(service))[0]).toMatchObject({ refused: 0, lastNotificationAt: acceptedAt })
    expect((await notify(service, notification('0'.repeat(32)))).status).toBe(404)
    await until('it tells of the new day', async () => (await instancesOf(service))[0]?.refused === 1)
  })

  it('forgets those that were not seen for two days, and no other', async () => {
    const service = await startService({ limits: SOON })
    const killed = (instanceId: string, seenAt: string) =>
      service.db.query(
        `insert into service_instances (instance_id, host, version, started_at, seen_at) values ($1, 'h', '0.9', $2, $2)`,
        [instanceId, seenAt],
      )
    await killed('long ago', '2026-03-29T18:29:58Z')
    await killed('not so long ago', '2026-03-29T18:30:00Z')
    const names = async () => (await instancesOf(service)).map(({ instanceId }) => instanceId)
    // It may have beaten before they were there.
    await until('it has beaten', async () => (await names()).length > 1 && !(await names()).includes('long ago'))
    expect((await instancesOf(service)).map(({ version }) => version).sort()).toEqual(['0.9', '1.0.0'])
  })

  it('that cannot write it down serves on, and says so in its log only', async () => {
    const service = await startService({ limits: SOON })
    await service.db.query('alter table service_instances rename to elsewhere')
    const { mid, key } = await newMerchant(service.db)
    await until('it is logged', async () => service.log.join().includes('that this instance runs was not written down'))
    expect((await post(service.app, CREATE, intentFields(mid), key)).status).toBe(200)
    await service.db.query('alter table elsewhere rename to service_instances')
    await until('it beats again', async () => (await instancesOf(service)).length === 1)
  })
})
