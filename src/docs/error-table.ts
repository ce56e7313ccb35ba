import { html } from '../platform/html.ts'
import type { Described } from '../platform/http/operation.ts'
import type { GuideName } from './chapters.ts'
import { commonErrors, HTTP_ERRORS, ROUTING_ERRORS } from './common-errors.ts'

/**
 * One row in the table that replaces the line {ERRORS} in a chapter. `operations` is empty for an error that all
 * operations return.
 */
type ErrorRow = { statusCode: number; msg: string; operations: string[] }

const TAGS: Partial<Record<GuideName, Described['tag']>> = {
  merchant: 'Merchant',
  partner: 'Partner',
  acquirer: 'Acquirer',
}

/** Returns the errors of the operations that a guide documents, sorted by status. */
export function errorRows(guide: GuideName, operations: readonly Described[]): ErrorRow[] {
  const documented = operations.filter(({ tag }) => tag === TAGS[guide])
  const rows = new Map<string, ErrorRow>()
  const add = (operation: string, { statusCode, message }: { statusCode: number; message: string }) => {
    const key = `${statusCode} ${message}`
    const row = rows.get(key) ?? { statusCode, msg: message, operations: [] }
    rows.set(key, row)
    if (!row.operations.includes(operation)) row.operations.push(operation)
  }
  for (const { name, access, errors: own } of documented) {
    const errors = [...own, ...commonErrors(access), ...HTTP_ERRORS, ...ROUTING_ERRORS]
    for (const error of errors) add(name, error)
  }
  return [...rows.values()]
    .map((row) => (row.operations.length === documented.length ? { ...row, operations: [] } : row))
    .sort((one, other) => one.statusCode - other.statusCode || Number(isCommon(one)) - Number(isCommon(other)))
}

const isCommon = ({ operations }: ErrorRow) => operations.length === 0

const PLACEHOLDER = '{ERRORS}'
const HEADINGS = ['Status', '`msg`', 'Operations']

/** Replaces the line {ERRORS} in a chapter's Markdown with a table. */
export function withErrorsInMarkdown(markdown: string, rows: () => readonly ErrorRow[]): string {
  return markdown.replace(/^\{ERRORS\}$/m, () =>
    [
      `| ${HEADINGS.join(' | ')} |`,
      '|---|---|---|',
      ...rows().map(({ statusCode, msg, operations }) => {
        const names = operations.map((name) => `\`${name}\``).join(', ') || 'all'
        return `| ${statusCode} | ${msg.replaceAll('|', '\\|')} | ${names} |`
      }),
    ].join('\n'),
  )
}

/** Replaces the line {ERRORS} in a chapter's HTML, where the line is a paragraph, with a table. */
export function withErrorsInHtml(fragment: string, rows: () => readonly ErrorRow[]): string {
  return fragment.replace(`<p>${PLACEHOLDER}</p>\n`, () =>
    html`<div class="table" tabindex="0"><table>
<thead>
<tr><th>Status</th><th><code>msg</code></th><th>Operations</th></tr>
</thead>
<tbody>
${rows().map(({ statusCode, msg, operations }) => {
  const names = operations.flatMap((name, index) => [index === 0 ? '' : ', ', html`<code>${name}</code>`])
  return html`<tr><td>${statusCode}</td><td>${msg}</td><td>${names.length === 0 ? 'all' : names}</td></tr>\n`
})}</tbody>
</table></div>
`.toString(),
  )
}

/** Replaces the line {ERRORS} in the text from which the search index is built. */
export function withErrorsInText(text: string, rows: () => readonly ErrorRow[]): string {
  return text.replace(PLACEHOLDER, () =>
    rows()
      .map(({ statusCode, msg }) => `${statusCode} ${msg}.`)
      .join(' '),
  )
}
