import type { Tenant } from '../support/tenants.ts'

/** What an attacker knows. It goes to a process of its own as JSON. */
export type Target = {
  /** Of the service, or of the balancer before it. */
  url: string
  seconds: number
  /** The attacker's own merchant and partner: good keys, and no other's. */
  tenant: Tenant
  /** Open orders whose addresses the attacker knows. */
  orderIds: string[]
}

/** Attacks until `target.seconds` are over, and returns in words what was sent and what came back. */
export type Attacker = (target: Target) => Promise<string>
