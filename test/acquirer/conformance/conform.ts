import { beforeAll, describe, it } from 'vitest'
import { PATIENT_LIMITS } from '../../support/service-with-bank.ts'
import type { AcquirerName, Driver, Stage } from './driver.ts'
import { FEES } from './fees.ts'
import { INSTRUMENTS } from './instruments.ts'
import { LINK_FAULTS, LINK_HANGS, LINKS } from './links.ts'
import { NOTIFICATIONS } from './notifications.ts'
import { REFUNDS } from './refunds.ts'
import { STATUS_CHECKS } from './status-checks.ts'

/** A short time limit, because the cases of a hanging bank wait for it. */
const SHORT_WAIT = { ...PATIENT_LIMITS, outbound: { acquirerMs: 300 } }

const TABLES = [
  {
    what: 'with a bank',
    limits: PATIENT_LIMITS,
    cases: [...LINKS, ...LINK_FAULTS, ...NOTIFICATIONS, ...STATUS_CHECKS, ...INSTRUMENTS, ...FEES, ...REFUNDS],
  },
  { what: 'with a bank that hangs', limits: SHORT_WAIT, cases: LINK_HANGS },
]

type Table = (typeof TABLES)[number]

const applying = ({ cases }: Table, name: AcquirerName) => cases.filter(({ not }) => not?.[name] === undefined)

/**
 * Runs the behaviour that every acquirer has to show. Each acquirer has its own file, so that workers run them in
 * parallel. A case that does not apply to an acquirer states the reason.
 */
export function conform(name: AcquirerName, start: Driver): void {
  describe.each(TABLES.filter((table) => applying(table, name).length > 0))(`the acquirer ${name} $what`, (table) => {
    let stage: Stage
    beforeAll(async () => {
      stage = await start({ limits: table.limits })
    })
    for (const { name: promise, run } of applying(table, name)) it(promise, () => run(stage))
  })
}
