import type { Logger } from 'pino'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Merchant } from '../merchants/merchants.ts'
import { directNotifications } from './direct.ts'
import { type AcquirerCalls, type CallOutcome, createIssuer, type Issuer } from './issuer.ts'
import type { Notifications } from './notification.ts'
import { SETU_VPA, type SetuSettings, setuCalls, setuNotifications } from './setu.ts'

/** What the operator has set up. `direct` is the secrets of its notifications. */
export type AcquirerSettings = { direct: readonly string[]; setu: SetuSettings | undefined }

type Payee = Pick<Merchant, 'vpa'> & { acquirerMerchantId?: string | null | undefined }

/** Every acquirer that a merchant may have, by name. */
const ACQUIRERS: Record<string, { variables: string; faultOf: (merchant: Payee) => string | undefined }> = {
  direct: { variables: 'ACQUIRER_SECRETS', faultOf: () => undefined },
  setu: {
    variables: 'SETU_CLIENT_ID, SETU_CLIENT_SECRET and SETU_NOTIFICATION_SECRETS',
    faultOf({ vpa, acquirerMerchantId }) {
      if (!acquirerMerchantId) return 'setu needs --acquirer-merchant-id, the identifier of the merchant at Setu'
      return SETU_VPA.test(vpa) ? undefined : 'setu takes a --vpa of a-z 0-9 . - before the @ and letters behind it'
    },
  },
}

/** Those that make their own links, as far as they are set up. */
function callsOf({ setu }: AcquirerSettings, limits: Limits['acquirers']): Record<string, AcquirerCalls> {
  return { ...(setu && { setu: setuCalls(setu, limits) }) }
}

/** Why a merchant cannot have this acquirer, for the operator; undefined when it can. */
export function acquirerFault(
  name: string,
  merchant: Payee,
  settings: Pick<AcquirerSettings, 'setu'>,
): string | undefined {
  const acquirer = ACQUIRERS[name]
  if (acquirer === undefined) return `acquirer must be one of ${Object.keys(ACQUIRERS).join(', ')}`
  // Who signs for `direct` may be set up later: its links work without.
  if (name === 'setu' && !settings.setu) return `the acquirer ${name} is not set up: set ${acquirer.variables}`
  return acquirer.faultOf(merchant)
}

export type Acquirers = ReturnType<typeof createAcquirers>

/** The acquirers of one instance. */
export function createAcquirers(
  settings: AcquirerSettings,
  options: {
    log: Pick<Logger, 'warn' | 'error'>
    onCall: (acquirer: string, call: keyof AcquirerCalls, outcome: CallOutcome) => void
    limits: Limits['acquirers']
  },
) {
  const issuers = new Map<string, Issuer>(
    Object.entries(callsOf(settings, options.limits)).map(([name, calls]) => [
      name,
      createIssuer(name, calls, options),
    ]),
  )
  const notifications: Notifications[] = [
    ...(settings.direct.length > 0 ? [directNotifications(settings.direct)] : []),
    ...(settings.setu ? [setuNotifications(settings.setu.notificationSecrets)] : []),
  ]
  return {
    /** Those that make their own links, by name. */
    issuers,
    notifications,

    /** The acquirer that makes the links of a merchant; undefined where we make them. Throws 503 if it is not set up. */
    issuerOf({ mid, acquirer }: Merchant): Issuer | undefined {
      if (acquirer === 'direct') return undefined
      const issuer = issuers.get(acquirer)
      if (issuer) return issuer
      options.onCall(acquirer, 'prepare', 'refused')
      options.log.error({ mid, acquirer }, notSetUp(acquirer))
      throw unavailable()
    },

    /** What the operator has to mend for these acquirers, which merchants have. */
    warningsOf: (names: readonly string[]) =>
      names.filter((name) => name !== 'direct' && !issuers.has(name)).map((name) => notSetUp(name)),
  }
}

const notSetUp = (name: string) =>
  `Merchants of the acquirer ${name} cannot take payments: set ${ACQUIRERS[name]?.variables ?? `up ${name}`}`
