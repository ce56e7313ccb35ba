import pg from 'pg'

const { DATE, INT8, NUMERIC } = pg.types.builtins

/**
 * Column parsers for every connection. An int8, such as an amount in paise or a count, becomes a number; a value beyond
 * 2^53 is an error, because a number would lose digits. A numeric is an error, because the statement lacks a cast for
 * its sum or quotient. A date stays text, `YYYY-MM-DD`, because a date has no time zone.
 */
export const NUMBER_TYPES: pg.CustomTypesConfig = {
  getTypeParser(type: number, format?: 'text' | 'binary') {
    if (type === INT8) return toSafeInteger
    if (type === DATE) return String
    if (type === NUMERIC) return rejectNumeric
    return pg.types.getTypeParser(type, format as 'text')
  },
}

/** Throws if the integer is beyond 2^53. */
export function toSafeInteger(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number)) throw new Error(`the database returned the integer ${text}, which is beyond 2^53`)
  return number
}

function rejectNumeric(): never {
  throw new Error('the database returned a numeric: cast it to bigint or text')
}
