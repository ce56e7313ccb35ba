import type { Tenant } from '../support/tenants.ts'

/** The attacker's knowledge, sent as JSON to its process. */
export type Target = {
  /** URL of the service or of HAProxy. */
  url: string
  seconds: number
  /** The attacker's own merchant and partner, with valid keys. */
  tenant: Tenant
  /** Open orders whose URLs the attacker knows. */
  orderIds: string[]
}

/** Attacks for `target.seconds`, and returns a description of requests and responses. */
export type Attacker = (target: Target) => Promise<string>
