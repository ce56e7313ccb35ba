import { ERROR_CODES, type ErrorCode } from '../errors.ts'
import { html } from '../platform/html.ts'
import type { Described } from '../platform/http/operation.ts'
import type { GuideName } from './chapters.ts'
import { commonErrors, ERRORS_OF_ALL } from './common-errors.ts'
import { ADVICE, REPEATABLE } from './error-advice.ts'

/** One row in the table that replaces the line {ERRORS} in a chapter. Some codes have several texts. */
type ErrorRow = { code: ErrorCode; statusCode: number; msgs: string[]; action: string; repeat: string }

const TAGS: Partial<Record<GuideName, readonly Described['tag'][]>> = {
  merchant: ['Merchant', 'Customer'],
  partner: ['Partner'],
  acquirer: ['Acquirer'],
}

/** Returns the errors of the operations that a guide documents, sorted by status. */
export function errorRows(guide: GuideName, operations: readonly Described[]): ErrorRow[] {
  const own = operations
    .filter(({ tag }) => TAGS[guide]?.includes(tag))
    .flatMap(({ access, errors }) => [...errors, ...commonErrors(access)])
  const msgs = new Map<ErrorCode, Set<string>>()
  for (const { code, message } of [...own, ...ERRORS_OF_ALL]) {
    msgs.set(code, (msgs.get(code) ?? new Set()).add(message))
  }
  return [...msgs]
    .map(([code, texts]) => {
      const repeat = REPEATABLE[code] ?? 'No.'
      return { code, statusCode: ERROR_CODES[code], msgs: [...texts], action: ADVICE[code], repeat }
    })
    .sort((one, other) => one.statusCode - other.statusCode)
}

const PLACEHOLDER = '{ERRORS}'

/** Replaces the line {ERRORS} in a chapter's Markdown with a table. */
export function withErrorsInMarkdown(markdown: string, rows: () => readonly ErrorRow[]): string {
  return markdown.replace(/^\{ERRORS\}$/m, () =>
    [
      '| Code | Status | `msg` | What to do | Repeat? |',
      '|---|---|---|---|---|',
      ...rows().map(({ code, statusCode, msgs, action, repeat }) => {
        const texts = msgs.map((msg) => msg.replaceAll('|', '\\|')).join('<br>')
        return `| \`${code}\` | ${statusCode} | ${texts} | ${action} | ${repeat} |`
      }),
    ].join('\n'),
  )
}

/** Replaces the line {ERRORS} in a chapter's HTML, where the line is a paragraph, with a table. */
export function withErrorsInHtml(fragment: string, rows: () => readonly ErrorRow[]): string {
  return fragment.replace(`<p>${PLACEHOLDER}</p>\n`, () =>
    html`<div class="table" tabindex="0"><table>
<thead>
<tr><th>Code</th><th>Status</th><th><code>msg</code></th><th>What to do</th><th>Repeat?</th></tr>
</thead>
<tbody>
${rows().map(({ code, statusCode, msgs, action, repeat }) => {
  const texts = msgs.flatMap((msg, index) => [index === 0 ? '' : html`<br>`, msg])
  // A code may break after an underscore: otherwise the last columns of the table are out of sight.
  const name = code.split('_').flatMap((word, index) => [index === 0 ? '' : html`_<wbr>`, word])
  return html`<tr><td><code>${name}</code></td><td>${statusCode}</td><td>${texts}</td><td>${action}</td><td>${repeat}</td></tr>\n`
})}</tbody>
</table></div>
`.toString(),
  )
}

/** Replaces the line {ERRORS} in the text from which the search index is built. */
export function withErrorsInText(text: string, rows: () => readonly ErrorRow[]): string {
  return text.replace(PLACEHOLDER, () =>
    rows()
      .map(({ code, statusCode, msgs }) => `${code} ${statusCode} ${msgs.join('. ')}.`)
      .join(' '),
  )
}
