import type { FastifyInstance } from 'fastify'
import type { AcquirerSettings } from './accounts.ts'
import { type Accounts, LINKING_NAMES } from './acquirers.ts'
import { paymentNotification } from './direct/notifications.ts'
import {
  acceptNotifications,
  type NotificationDependencies,
  type Notifier,
  type Receiving,
  routesOfOwnForm,
} from './notification.ts'

type Dependencies = NotificationDependencies &
  Receiving & {
    config: { acquirers: AcquirerSettings }
    accounts: Accounts
    metrics: { acquirersConfigured: (count: Accounts['countNotifying']) => void }
    notifierOf: (account: string) => Promise<Notifier | undefined>
  }

/** Registers the notification routes of all acquirers, each in its own format. */
export function acquirerRoutes(app: FastifyInstance, dependencies: Dependencies) {
  const { config, accounts, metrics } = dependencies
  metrics.acquirersConfigured(accounts.countNotifying)
  acceptNotifications(app, dependencies)
  if (config.acquirers.direct.length > 0) paymentNotification.register(app, dependencies)
  for (const name of LINKING_NAMES) routesOfOwnForm(app, name, dependencies)
}
