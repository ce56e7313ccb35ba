/**
 * One guide. `groups` maps the title of each group to its chapters in reading order: names of Markdown files without
 * `.md`.
 */
type Guide = { title: string; summary: string; groups: Record<string, readonly string[]> }

/** The guides, by the name of their folder in `guides`. */
export const GUIDES = {
  merchant: {
    title: 'Merchant API',
    summary: 'Accept payments: create, check, refund and list them, and receive webhooks.',
    groups: {
      Start: ['quickstart', 'payment-flow', 'authentication', 'testing', 'go-live'],
      Payments: [
        ...['hosted-page', 'own-page', 'request-fields', 'payment-status', 'failure-reasons', 'cancel'],
        ...['refunds', 'orders', 'lists', 'settlements'],
      ],
      Webhooks: ['webhooks', 'verify-signatures', 'webhook-responses', 'webhook-events', 'test-webhooks'],
      Reference: ['errors', 'retries', 'conventions', 'generated-clients', 'changelog'],
    },
  },
  partner: {
    title: 'Partner API',
    summary: 'List merchants, settlements and transactions, and reconcile a month.',
    groups: { Partner: ['quickstart', 'transactions', 'reconcile', 'errors'] },
  },
  plugins: {
    title: 'Store plugins',
    summary: 'WooCommerce, WHMCS, PHP and Android: settings, supported features and known defects.',
    groups: { 'Store plugins': ['overview', 'php', 'whmcs', 'woocommerce', 'android', 'outages'] },
  },
  acquirer: {
    title: 'Acquirer notifications',
    summary: 'Send signed payment notifications to the service.',
    groups: { Acquirer: ['notifications'] },
  },
  operator: {
    title: 'Operator manual',
    summary: 'Install, run and upgrade the service; settlements, reconciliation and incidents.',
    groups: {
      Start: ['first-day', 'sandbox', 'commands', 'routine'],
      Install: ['install', 'install-without-docker', 'proxy'],
      Merchants: ['merchants', 'keys'],
      Acquirers: ['acquirers', 'acquirer-accounts', 'fees'],
      Payments: ['payments', 'exceptions', 'refunds', 'disputes', 'console', 'daily-reports'],
      'Webhooks and audit': ['webhooks', 'audit'],
      Settlements: [
        ...['settlements', 'file-layouts', 'pull-settlements', 'reconciliation', 'discrepancies'],
        ...['bank-statements', 'accounting', 'month-end', 'tally'],
      ],
      'Data and law': ['personal-data', 'retention', 'archiving', 'backup'],
      Operations: ['upgrade', 'monitoring', 'logs', 'troubleshooting', 'security-incident'],
      Scaling: ['capacity', 'scaling', 'pgbouncer', 'high-availability', 'move-database', 'sharding'],
      Reference: ['configuration', 'limits'],
    },
  },
  alerts: {
    title: 'Alerts',
    summary: 'What each alert means, its impact, checks and fix.',
    groups: {
      Service: [
        'InstanceAway',
        'RequestsUnavailable',
        'RequestsFailed',
        'IntentsSlow',
        'ConnectionsScarce',
        'DatabaseServerAway',
        'NoSynchronousStandby',
        'DiskSpaceLow',
      ],
      Acquirers: [
        'AcquirerAway',
        'AcquirerRefuses',
        'NextAcquirerAtWork',
        'OwnAccountsUnavailable',
        'NotificationsRefused',
        'NoNotifications',
        'NoAcquirer',
      ],
      Payments: [
        'NoPayments',
        'BankUnavailable',
        'PaymentsToLookInto',
        'ExceptionsOpen',
        'RefundsOverdue',
        'DisputeAwaitsResponse',
        'NoIntents',
      ],
      Webhooks: ['WebhooksBehind', 'WebhookSwitchedOff', 'WebhookAddressRefused'],
    },
  },
  acquirers: {
    title: 'Acquirers',
    summary: 'Connect Setu, Cashfree, PhonePe or Razorpay.',
    groups: { Acquirers: ['setu', 'cashfree', 'phonepe', 'razorpay'] },
  },
  decisions: {
    title: 'Decisions',
    summary: 'Why the code is as it is: each decision with what was measured and what enforces it.',
    groups: {
      Payments: ['money-in-paise', 'one-utr-one-order', 'fail-is-not-final', 'late-payments', 'idempotency'],
      Acquirers: ['failover', 'refunds-sent-once'],
      'Speed and overload': ['shared-inserts', 'shared-look-ups', 'event-loop-check', 'streamed-lists'],
      Storage: ['postgresql-only', 'database-roles', 'citus', 'delete-a-merchant', 'erased-customers', 'audit'],
      Ledger: ['ledger-contents', 'past-reports', 'month-close', 'daily-totals'],
      'Merchants and customers': ['webhook-outbox', 'outbound-addresses', 'pay-page-updates', 'store-plugins'],
      'Console and code': ['console', 'dependencies', 'code-limits', 'forbidden-words'],
    },
  },
} as const satisfies Record<string, Guide>

export type GuideName = keyof typeof GUIDES

/** Returns the paths of a guide's chapters in reading order, such as `merchant/quickstart`. */
export function chaptersOf(guide: GuideName): string[] {
  return Object.values<readonly string[]>(GUIDES[guide].groups).flatMap((names) =>
    names.map((name) => `${guide}/${name}`),
  )
}

/** Returns the guide of a chapter's path, such as `merchant` for `merchant/quickstart`. */
export const guideOf = (chapter: string) => chapter.split('/')[0] as GuideName
