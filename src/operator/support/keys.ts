import { createAccessKeys } from '../../gateway/tenants/access-keys.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { createOperatorKeys } from '../console/operator-keys.ts'

type Owner = Partial<Record<'mid' | 'pid' | 'operator', string | undefined>>

/** Lists the keys of merchants and partners, then the keys of operators. */
export async function listKeys(db: Queryable, { mid, pid, operator }: Owner) {
  const accessKeys = operator === undefined ? await createAccessKeys(db).list({ mid, pid }) : []
  const operatorKeys = (mid ?? pid) === undefined ? await createOperatorKeys(db).list({ operator }) : []
  return [
    ...accessKeys.map((key) => ({ ...key, operator: null })),
    ...operatorKeys.map((key) => ({ ...key, mid: null, pid: null, lastUsedOn: null })),
  ]
}
