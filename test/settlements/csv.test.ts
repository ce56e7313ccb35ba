import { describe, expect, it } from 'vitest'
import { checkRecord, SETTLEMENT_FILE } from '../../src/settlements/csv.ts'

const { checkHeader } = SETTLEMENT_FILE

const NAMES = ['mid', 'amount', 'utr', 'bank_reference_number', 'status', 'initiation_date']

function check(changes: Record<string, string> = {}) {
  const fields: Record<string, string> = {
    mid: 'M1',
    amount: '249.50',
    utr: '523504870405',
    bank_reference_number: 'AXIS 01/2-3_4.5',
    status: 'SUCCESS',
    initiation_date: '2026-01-31T09:30:00Z',
    ...changes,
  }
  const at = checkHeader(Object.keys(fields)).value
  if (!at) throw new Error('the header of this test is wrong')
  return checkRecord(Object.values(fields), at)
}

describe('the header', () => {
  it('may name the columns in any order, with or without those that are optional', () => {
    expect(checkHeader(NAMES).value).toMatchObject({ mid: 0, initiation_date: 5, created_at: -1, payment_utr: -1 })
    expect(checkHeader(['fee', ...NAMES, 'payment_utr', 'tax']).value).toMatchObject({ fee: 0, tax: 8, payment_utr: 7 })
    expect(checkHeader(['created_at', ...NAMES].reverse()).value).toMatchObject({ mid: 5, created_at: 6 })
  })

  it('names every column that is missing, unknown or repeated', () => {
    expect(checkHeader(['mid', 'mid', 'amount', 'utr', 'status', 'initiation_date', 'gst']).faults).toEqual([
      'column bank_reference_number is missing',
      'column "gst" is unknown',
      'column mid appears twice',
    ])
  })
})

describe('a record', () => {
  it('is taken as it stands, its amount as text', () => {
    expect(check().value).toEqual({
      mid: 'M1',
      amount: '249.50',
      utr: '523504870405',
      bankReferenceNumber: 'AXIS 01/2-3_4.5',
      status: 'SUCCESS',
      initiatedAt: '2026-01-31T09:30:00Z',
      createdAt: null,
      fee: null,
      tax: null,
      paymentUtr: null,
    })
  })

  it('may say fee, tax and the UTR of the payment, which is kept in upper case, or leave each of them empty', () => {
    const stated = { fee: '4', tax: '0.72', paymentUtr: 'HDFC0001' }
    expect(check({ fee: '4', tax: '0.72', payment_utr: 'hdfc0001' }).value).toMatchObject(stated)
    const nothing = { fee: null, tax: null, paymentUtr: null }
    expect(check({ fee: '', tax: '', payment_utr: '' }).value).toMatchObject(nothing)
  })

  it.each(['fee', 'tax'])('takes no %s that is not rupees of at most two decimals', (column) => {
    for (const wrong of ['-1', '1.005', '1e3', '1,000', ' ', 'NaN', '٣', '1000000000000', '\\N', '1\t2']) {
      expect(check({ [column]: wrong }).faults).toEqual([
        `${column} must be rupees such as 250 or 249.50, not negative, below 1000000000000`,
      ])
    }
  })

  it.each(['a b', '5-1', '1'.repeat(36), '\\N', '1\t2', '5\n', 'é', ' 1'])('takes no payment_utr "%s"', (utr) => {
    expect(check({ payment_utr: utr }).faults).toEqual(['payment_utr must be 1 to 35 letters and digits'])
  })

  it('names all its faults at once and repeats nothing of what it held', () => {
    const record = { mid: 'M 1', amount: 'x', utr: '', bank_reference_number: '', status: 'done', initiation_date: '' }
    const faults = check({ ...record, created_at: 'yesterday' }).faults
    expect(faults?.map((fault) => fault.split(' ')[0])).toEqual([...NAMES, 'created_at'])
    expect(faults?.join()).not.toMatch(/yesterday|done/)
  })

  it.each(['1', '0', '0.5', '1.05', '999999999999.99'])('takes the amount %s', (amount) => {
    expect(check({ amount }).value?.amount).toBe(amount)
  })

  it.each([
    '-1',
    '-0.01',
    '+1',
    '1.123456789012',
    '1.005',
    '1.',
    '.5',
    '1e3',
    '0x10',
    '1,000',
    ' 1',
    '1 ',
    '',
    '٣',
    'NaN',
    '1000000000000',
  ])('refuses the amount "%s"', (amount) => {
    expect(check({ amount }).faults?.[0]).toMatch(/^amount must be/)
  })

  it('refuses another number of fields than the header names', () => {
    const at = checkHeader(NAMES).value
    expect(at && checkRecord(['M1', '1'], at).faults).toEqual(['has 2 fields, not 6'])
  })
})

describe('a time', () => {
  it.each([
    ['2026-01-31T09:30:00Z', '2026-01-31T04:00:00.000Z', '2026-01-31 09:30:00'],
    ['2028-02-29T23:59:59.123+05:30', '2028-02-29T18:29:59.000Z', '2028-02-29 23:59:59'],
  ])('is ISO 8601 with a zone (%s), or Indian time without one', (iso, utc, indian) => {
    expect(check({ initiation_date: iso }).value?.initiatedAt).toBe(iso)
    const read = check({ initiation_date: indian }).value?.initiatedAt ?? ''
    expect(new Date(read).toISOString()).toBe(utc)
  })

  it.each([
    '31-02-2026',
    '2026-02-31T00:00:00Z',
    '2026-02-31 00:00:00',
    '2027-02-29 00:00:00',
    '2026-04-31T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-13-10T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-31T24:00:00Z',
    '2026-01-31T09:60:00Z',
    '2026-01-31T09:30:60Z',
    '2026-01-31T09:30:00',
    '2026-01-31T09:30:00+15:00',
    '2026-01-31T09:30:00.1234567Z',
    '2026-01-31',
    '1026-01-31 09:30:00',
    'now',
    'infinity',
  ])('that does not exist or has no zone is refused: %s', (time) => {
    expect(check({ initiation_date: time }).faults?.[0]).toMatch(/^initiation_date must be a time that exists/)
  })

  it('of creation may be left empty, not wrong', () => {
    expect(check({ created_at: '' }).value?.createdAt).toBeNull()
    expect(check({ created_at: '2026-02-30 00:00:00' }).faults?.[0]).toMatch(/^created_at must be/)
  })
})
