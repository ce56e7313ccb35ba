import { beforeAll, describe, it } from 'vitest'
import { cashfree } from './conformance/cashfree.ts'
import { direct } from './conformance/direct.ts'
import type { AcquirerName, Driver, Stage } from './conformance/driver.ts'
import { ENQUIRIES } from './conformance/enquiries.ts'
import { LINK_FAULTS, LINK_HANGS, LINKS } from './conformance/links.ts'
import { NOTIFICATIONS } from './conformance/notifications.ts'
import { phonepe } from './conformance/phonepe.ts'
import { REFUNDS } from './conformance/refunds.ts'
import { setu } from './conformance/setu.ts'

/** Long, so that a busy machine does not turn a right answer into a 503. Each case looks itself for what is due. */
const PATIENT = {
  outbound: { acquirerMs: 30_000 },
  acquirers: { requestMs: 30_000 },
  webhooks: { lookIntervalMs: 3_600_000 },
}
/** Short, because the cases of a bank that hangs wait for it. */
const IMPATIENT = { ...PATIENT, outbound: { acquirerMs: 300 } }

const DRIVERS: Record<AcquirerName, Driver> = { direct, setu, cashfree, phonepe }

const TABLES = [
  {
    what: 'with a bank',
    limits: PATIENT,
    cases: [...LINKS, ...LINK_FAULTS, ...NOTIFICATIONS, ...ENQUIRIES, ...REFUNDS],
  },
  { what: 'with a bank that hangs', limits: IMPATIENT, cases: LINK_HANGS },
]

type Table = (typeof TABLES)[number]

const applying = ({ cases }: Table, name: AcquirerName) => cases.filter(({ not }) => not?.[name] === undefined)

/** What every acquirer has to do. A case that does not apply to one says why. */
describe.each(Object.keys(DRIVERS) as AcquirerName[])('the acquirer %s', (name) => {
  describe.each(TABLES.filter((table) => applying(table, name).length > 0))('$what', (table) => {
    let stage: Stage
    beforeAll(async () => {
      stage = await DRIVERS[name]({ limits: table.limits })
    })
    for (const { name: promise, run } of applying(table, name)) it(promise, () => run(stage))
  })
})
