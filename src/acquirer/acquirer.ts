import type { Limits } from '../limits.ts'
import type { Merchant } from '../tenants/merchants.ts'
import type { AcquirerCalls } from './issuer.ts'
import type { Notifications } from './notification.ts'

/** An acquirer: who may have it, and how it is reached where the operator has set it up. `Settings` holds its own. */
export type Acquirer<Settings> = {
  /** The variables without which it is not set up, for the operator. */
  variables: string
  /** Why it cannot serve a merchant, for the operator; undefined when it can. */
  faultOf: (merchant: Payee) => string | undefined
  /** Its notifications; undefined unless it is set up. */
  notifications: (settings: Settings) => Notifications | undefined
  /** Of one that makes its own links: its calls; undefined unless it is set up. */
  calls?: (settings: Settings, limits: Limits['acquirers'], elapsedMs: () => number) => AcquirerCalls | undefined
}

export type Payee = Pick<Merchant, 'vpa'> & { acquirerMerchantId?: string | null | undefined }
