import { beforeAll, describe, it } from 'vitest'
import type { AcquirerName, Driver, Stage } from './driver.ts'
import { ENQUIRIES } from './enquiries.ts'
import { LINK_FAULTS, LINK_HANGS, LINKS } from './links.ts'
import { NOTIFICATIONS } from './notifications.ts'
import { REFUNDS } from './refunds.ts'

/** Long, so that a busy machine does not turn a right answer into a 503. Each case looks itself for what is due. */
const PATIENT = {
  outbound: { acquirerMs: 30_000 },
  acquirers: { requestMs: 30_000 },
  webhooks: { lookIntervalMs: 3_600_000 },
}
/** Short, because the cases of a bank that hangs wait for it. */
const IMPATIENT = { ...PATIENT, outbound: { acquirerMs: 300 } }

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

/** What every acquirer has to do, each in a file of its own, so that workers share them. A case that does not apply to one says why. */
export function conform(name: AcquirerName, start: Driver): void {
  describe.each(TABLES.filter((table) => applying(table, name).length > 0))(`the acquirer ${name} $what`, (table) => {
    let stage: Stage
    beforeAll(async () => {
      stage = await start({ limits: table.limits })
    })
    for (const { name: promise, run } of applying(table, name)) it(promise, () => run(stage))
  })
}
