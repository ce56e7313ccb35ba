import { isMerchantError, type MerchantError, merchantErrorText } from '../../books/reading/snapshot.ts'
import { counted } from '../../platform/money.ts'
import { CommandError } from './errors.ts'
import type { Views } from './result.ts'

/** Formats errors as one line with the cause of the first; undefined if there are none. Counts a merchant once. */
export function errorsLine(errors: readonly MerchantError[]): string | undefined {
  const [first] = errors
  const more = new Set(errors.map(({ mid }) => mid)).size - 1
  return first && `${merchantErrorText(first)}${more > 0 ? `; and ${counted(more, 'more merchant')}` : ''}`
}

/** Returns the error with which a command ends after it has printed a report without these merchants. */
export function failureOf(errors: readonly MerchantError[]): CommandError | undefined {
  const line = errorsLine(errors)
  return line === undefined ? undefined : new CommandError(line)
}

/** Passes `rows` on. Once they are read, `failure` returns the error for the merchants that the rows do not include. */
export function collectErrors<R extends object>(rows: AsyncIterable<R | MerchantError>) {
  const errors: MerchantError[] = []
  async function* collecting() {
    for await (const row of rows) {
      if (isMerchantError(row)) errors.push(row)
      yield row
    }
  }
  return { rows: collecting(), failure: () => failureOf(errors) }
}

/** Returns views of a table whose rows may be errors. The column `column` shows the cause of an error. */
export const withErrors = <R extends object, C extends string>(
  column: string,
  { cells, json, words, changes, links, line, ...views }: Views<R, C> = {},
): Views<R | MerchantError, C> => ({
  ...views,
  cells: (row) => (isMerchantError(row) ? errorCells(row, column) : (cells?.(row) ?? row)) as Cells<C>,
  json: (row) => (isMerchantError(row) ? row : (json?.(row) ?? row)),
  ...(words && { words: (row) => (isMerchantError(row) ? {} : words(row)) }),
  ...(changes && { changes: (row) => (isMerchantError(row) ? [] : changes(row)) }),
  ...(links && { links: (row) => (isMerchantError(row) ? {} : links(row)) }),
  ...(line && { line: (row) => (isMerchantError(row) ? merchantErrorText(row) : line(row)) }),
})

type Cells<C extends string> = ReturnType<NonNullable<Views<object, C>['cells']>>

const errorCells = ({ mid, error }: MerchantError, column: string) => ({ mid, [column]: `error: ${error}` })
