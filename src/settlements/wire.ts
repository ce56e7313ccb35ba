import type { Settlement } from './repository.ts'

/** One record of fetchSettlementList: contract A3. Every value is text. */
export type SettlementWire = {
  amount: string
  UTR: string
  bankReferenceNumber: string
  status: string
  merchant_id: string
  initiationDate: string
  created_at: string
}

export function toWire(settlement: Settlement): SettlementWire {
  return {
    amount: settlement.amount,
    UTR: settlement.utr,
    bankReferenceNumber: settlement.bankReferenceNumber,
    status: settlement.status,
    merchant_id: settlement.mid,
    initiationDate: settlement.initiatedAt,
    created_at: settlement.createdAt,
  }
}
