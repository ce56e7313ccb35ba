import { describe, expect, it } from 'vitest'
import {
  errorResponse,
  type Key,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  OWN_SETTLEMENTS,
  post,
  startService,
} from '../support/service.ts'

const service = await startService()
const { mid } = await newMerchant(service.db)
const { pid, key } = await newPartner(service.db, mid)

async function settle(rows: [utr: string, initiatedAt: string, amount?: string, status?: string, of?: string][]) {
  for (const [utr, initiatedAt, amount = '1000.00', status = 'SUCCESS', of = mid] of rows) {
    await service.db.query(
      `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
       values ($1, $2, $3, $4, $5, $6, $7)`,
      [of, utr, Math.round(Number(amount) * 100), `BRN${utr}`, status, initiatedAt, '2026-01-05T00:00:00.5Z'],
    )
  }
}

const list = (s_date: string, e_date: string) => post(service.app, LIST, { pid, mid, s_date, e_date }, key)
const utrs = async (s_date: string, e_date: string) =>
  (await list(s_date, e_date)).body.data.map((record: { UTR: string }) => record.UTR)

describe('an accepted fetchSettlementList', () => {
  it('fetchSettlementList returns records with exactly the documented fields, whose values are all strings', async () => {
    await settle([['523504870405', '2024-02-29T10:11:12.345Z', '0.50', 'PENDING']])
    const { status, body, headers } = await list('29-02-2024', '29-02-2024')
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('application/json; charset=utf-8')
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-request-id': expect.any(String) })
    expect(body).toEqual({
      status: true,
      statusCode: 200,
      msg: 'Settlements found',
      data: [
        {
          amount: '0.50',
          UTR: '523504870405',
          bankReferenceNumber: 'BRN523504870405',
          status: 'PENDING',
          merchant_id: mid,
          initiationDate: '2024-02-29T10:11:12.345Z',
          created_at: '2026-01-05T00:00:00.500Z',
        },
      ],
    })
  })

  it("fetchSettlementList returns deductions with the bank's negative amount, in short and in streamed lists", async () => {
    await settle([['P1R1', '2025-03-01T10:00:00Z', '-200.00', 'FAILED']])
    const short = await list('01-03-2025', '01-03-2025')
    expect(short.body.data).toMatchObject([{ UTR: 'P1R1', amount: '-200.00', status: 'FAILED' }])
    await service.db.query(
      `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
       select $1, 'LONG' || i, 50, 'B1', 'SUCCESS', '2025-03-02T10:00:00Z', '2025-03-02T10:00:00Z' from generate_series(1, 1000) i`,
      [mid],
    )
    const { data } = (await list('01-03-2025', '02-03-2025')).body
    expect(data).toHaveLength(1001)
    expect(data[0]).toEqual(short.body.data[0])
    expect(data[1]).toMatchObject({ UTR: 'LONG1', amount: '0.50' })
  })

  it('fetchSettlementList includes the whole first and last day in Indian Standard Time', async () => {
    await settle([
      ['D1', '2026-01-09T18:29:59.999Z'],
      ['D2', '2026-01-09T18:30:00.000Z'],
      ['D3', '2026-01-11T18:29:59.999Z'],
      ['D4', '2026-01-11T18:30:00.000Z'],
    ])
    expect(await utrs('10-01-2026', '11-01-2026')).toEqual(['D2', 'D3'])
    expect(await utrs('10-01-2026', '10-01-2026')).toEqual(['D2'])
  })

  it('fetchSettlementList sorts settlements oldest first, then by UTR in byte order', async () => {
    await settle([
      ['b', '2026-02-02T10:00:00Z'],
      ['B', '2026-02-02T10:00:00Z'],
      ['a', '2026-02-02T10:00:00Z'],
      ['1', '2026-02-02T10:00:00Z'],
      ['z', '2026-02-01T10:00:00Z'],
    ])
    expect(await utrs('01-02-2026', '28-02-2026')).toEqual(['z', '1', 'B', 'a', 'b'])
  })

  it("fetchSettlementList sorts UTRs in byte order regardless of the server's locale and the query plan", async () => {
    const { rows } = await service.db.query(
      `select c.collname from pg_attribute a join pg_collation c on c.oid = a.attcollation
        where a.attrelid = 'settlements'::regclass and a.attname = 'utr'`,
    )
    expect(rows).toEqual([{ collname: 'C' }])
    // Without the index, only the query's own order can sort the rows.
    await service.db.query('drop index settlements_mid_initiated_at_utr_idx')
    expect(await utrs('01-02-2026', '28-02-2026')).toEqual(['z', '1', 'B', 'a', 'b'])
    await service.db.query('create index settlements_mid_initiated_at_utr_idx on settlements (mid, initiated_at, utr)')
  })

  it("fetchSettlementList returns all statuses, amounts exact to the paisa, and only the requested merchant's settlements", async () => {
    const other = await newMerchant(service.db)
    await settle([
      ['S1', '2026-03-02T10:00:00Z', '999999999999.99', 'SUCCESS'],
      ['S2', '2026-03-02T11:00:00Z', '0.01', 'FAILED'],
      ['S3', '2026-03-02T12:00:00Z', '5', 'PENDING', other.mid],
    ])
    const { data } = (await list('01-03-2026', '31-03-2026')).body
    expect(data.map((r: Record<string, string>) => [r.UTR, r.amount, r.status])).toEqual([
      ['S1', '999999999999.99', 'SUCCESS'],
      ['S2', '0.01', 'FAILED'],
    ])
  })

  it('fetchSettlementList returns 200 with an empty list and "No settlements found" for a range without settlements', async () => {
    const { status, body } = await list('01-01-1999', '31-12-1999')
    expect([status, body]).toEqual([200, { status: true, statusCode: 200, msg: 'No settlements found', data: [] }])
  })

  it('fetchSettlementList accepts a range from the first to the last day of the calendar', async () => {
    expect((await list('01-01-0001', '31-12-9999')).status).toBe(200)
  })
})

describe('fetchSettlementList of a merchant', () => {
  const own = (of: string, by: Key, headers = {}) =>
    post(service.app, OWN_SETTLEMENTS, { mid: of, s_date: '01-01-2020', e_date: '31-12-2029' }, by, headers)

  it.each(['application/json', 'text/csv'])(
    'fetchSettlementList returns the same %s to a merchant as to its partner, byte for byte, in short and in streamed lists',
    async (accept) => {
      const merchant = await newMerchant(service.db)
      const reader = await newPartner(service.db, merchant.mid)
      const partners = async () => {
        const fields = { pid: reader.pid, mid: merchant.mid, s_date: '01-01-2020', e_date: '31-12-2029' }
        return (await post(service.app, LIST, fields, reader.key, { accept })).text
      }
      const empty = (await own(merchant.mid, merchant.key, { accept })).text
      expect(empty).toBe(await partners())
      for (const rows of [30, 1_100]) {
        await service.db.query(
          `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
           select $1, 'U' || $2::int + i, 50, '-B1', 'SUCCESS', '2025-03-02T10:00:00Z', now() from generate_series(1, $2::int) i`,
          [merchant.mid, rows],
        )
        const { status, text } = await own(merchant.mid, merchant.key, { accept })
        expect(status).toBe(200)
        expect(text).toBe(await partners())
        expect(text.length).toBeGreaterThan(rows * 50)
      }
    },
  )

  it("fetchSettlementList returns 403 for another merchant's mid, to a partner without pid, and to a disabled merchant", async () => {
    const merchant = await newMerchant(service.db)
    expect((await own(mid, merchant.key)).status).toBe(403)
    expect((await own(mid, key)).status).toBe(403)
    await service.db.query('update merchants set disabled_at = now() where mid = $1', [merchant.mid])
    expect((await own(merchant.mid, await newKey(service.db, merchant))).status).toBe(403)
  })
})

describe('a rejected fetchSettlementList', () => {
  it('fetchSettlementList rejects an empty request with 400 and names every missing field in documented order', async () => {
    const { body } = await post(service.app, LIST, undefined, key)
    expect(body).toEqual(errorResponse(400, 'pid is required; mid is required; s_date is required; e_date is required'))
  })

  it.each([
    '31-02-2026',
    '29-02-2027',
    '29-02-2100',
    '00-01-2026',
    '01-00-2026',
    '01-13-2026',
    '31-04-2026',
    '01-01-0000',
    '2026-01-01',
    '1-1-2026',
    '01/01/2026',
    '01-01-26',
    '01-01-2026T00:00',
    '०१-०१-२०२६',
    'today',
  ])('fetchSettlementList rejects the invalid date %s as s_date and as e_date with 400', async (date) => {
    const rule = 'must be an existing date in the format dd-mm-yyyy'
    expect((await list(date, '01-01-2030')).body).toEqual(errorResponse(400, `s_date ${rule}`))
    expect((await list('01-01-2000', date)).body).toEqual(errorResponse(400, `e_date ${rule}`))
  })

  it.each(['P 1', 'x'.repeat(65), 'P\u00e9'])(
    'fetchSettlementList rejects the malformed pid and mid %j with 400 and states the rule for both fields',
    async (id) => {
      const rule = 'must be 1 to 64 characters of A-Z a-z 0-9 _ -'
      const { body } = await post(
        service.app,
        LIST,
        { pid: id, mid: id, s_date: '01-01-2026', e_date: '01-01-2026' },
        key,
      )
      expect(body).toEqual(errorResponse(400, `pid ${rule}; mid ${rule}`))
    },
  )

  it('fetchSettlementList rejects an s_date after e_date with 400', async () => {
    const { status, body } = await list('02-01-2026', '01-01-2026')
    expect([status, body]).toEqual([400, errorResponse(400, 's_date must not be after e_date')])
  })
})
