import { type Html, html } from '../../platform/html.ts'
import { toIndianDigits } from '../../platform/money.ts'
import { neutralize } from '../../platform/printable.ts'
import { type Command, takesFile } from '../commands/command.ts'
import { flagsIn, hintOf, isRequired, type Values } from '../commands/field.ts'
import { IDENTIFIERS } from '../commands/find-payments.ts'
import { htmlPage } from '../page.ts'
import { columnOf, fieldsOf, groupOf, type OperatorView, type PageFields, pageName, recordOf } from './view.ts'

/**
 * `beside` is markup beside the title, and `text` the text of the search. `refreshSeconds` is the time until the page
 * reloads itself; undefined if it does not.
 */
export type Page = {
  title: string
  beside?: Html
  body: Html
  text?: string
  /** The result of the change that led to the page. */
  result?: Html | undefined
  /** Text before the title of the browser tab. */
  tab?: string
  refreshSeconds?: number | undefined
  /** The HTTP status, which is 200 by default. */
  status?: number
}

/**
 * Returns a page of the console, without characters that reorder its text; undefined `view` omits the navigation.
 * `command` is the one whose page it is.
 */
export function pageOf(page: Page, view: OperatorView | undefined, command?: Command): string {
  const { title, beside, body, text, result, tab } = page
  const all = html`<a class="skip" href="#text">Skip to content</a>
${view && header(view, command, text)}<main id="text">
${view && command && crumbs(view, command)}<div class="title"><h1>${title}</h1>${beside}</div>
${result}${body}</main>
`
  return neutralize(htmlPage({ title: tab ? `${tab} · ${title}` : title, styles: 'console.css', body: all }))
}

const header = (view: OperatorView, command: Command | undefined, text = '') => html`<header>
<a class="brand" href=".">UPI payments</a>
<form role="search" action="search"><input type="search" name="q" value="${text}" aria-label="UTR, order number, amount of today, merchant, or any identifier" placeholder="UTR, order number, ₹499 today, merchant…" required> <button>Search</button></form>
<span class="quiet">${view.operator.operator}${view.operator.rights.includes('act') ? undefined : ' (read only)'} · IST</span>
</header>
<nav aria-label="Lists"><details><summary>Lists</summary></details><ul>
${Object.entries(view.groups).map(([group, commands]) => {
  const lists = commands.filter(isList)
  return lists.map((list) => {
    const { title } = list
    const isInner = title !== group && lists.some((one) => one.title === group)
    const current = list === command ? html` aria-current="page"` : undefined
    const open = view.open.get(list)
    const count = open ? html` <span class="count">${toIndianDigits(open)}</span>` : undefined
    return html`<li><a href="${pageName(list)}${count && '?open=on'}" class="${isInner ? 'inner' : ''}"${current}>${title}${count}</a></li>\n`
  })
})}</ul></nav>
`

/** Whether a command reads a list. A command that only reads one record by the record's column is no list. */
const isList = (command: Command) => {
  const fields = Object.values(fieldsOf(command))
  return !command.changes && !(fields.length > 0 && fields.every(columnOf))
}

/** Returns a link to the first page of the group, such as the search of payments for an order. */
function crumbs(view: OperatorView, command: Command): Html | undefined {
  const [group, commands] = groupOf(view, command)
  const first = commands.find(({ changes }) => !changes)
  if (first === undefined || first === command) return undefined
  return html`<nav class="crumbs" aria-label="Breadcrumb"><a href="${pageName(first)}">${group}</a> ›</nav>\n`
}

/** Returns the filters of a command that reads, if it has any. The search of every page replaces identifiers. */
export const filterForm = async (command: Command, fields: PageFields, view: OperatorView): Promise<Html> =>
  Object.keys(fieldsOf(command)).length === 0
    ? html``
    : html`<form class="filters" action="${pageName(command)}">
${await inputs(command, fields, view)}<button>Show</button>
</form>
`

/** Returns the form of a change, whose figures the next page shows for confirmation. `back` is the page that follows. */
export const changeForm = async (
  command: Command,
  fields: PageFields,
  view: OperatorView,
  back: string,
): Promise<Html> =>
  html`<form class="change" method="post" action="${pageName(command)}"${takesFile(command) ? html` enctype="multipart/form-data"` : undefined}>
${takesFile(command) ? html`<label>File <input type="file" name="file" required></label>\n` : undefined}${await inputs(command, fields, view)}<input type="hidden" name="back" value="${back}">
<p class="actions"><button>Continue…</button> <a class="button" href="${back}">Cancel</a></p>
</form>
`

/** Returns an input for each flag of the command, which is hidden for the flag that names the record. */
async function inputs(command: Command, fields: PageFields, view: OperatorView): Promise<Html> {
  const record = recordOf(command, fields)
  // A form without a file begins with the first value that the operator must give.
  const [first] =
    Object.entries(fieldsOf(command, record)).find(
      ([flag, field]) => field.placeholder !== undefined && flag !== record && isRequired(field) && !fields[flag],
    ) ?? []
  const focused = command.changes && !takesFile(command) ? first : undefined
  const shown = Object.entries(fieldsOf(command, record)).map(async ([flag, field]) => {
    const { label, placeholder, example, isRepeatable } = field
    const value = typeof fields[flag] === 'string' ? fields[flag] : ''
    if (!command.changes && IDENTIFIERS.includes(flag) && value === '') return undefined
    if (flag === record) return html`<input type="hidden" name="${flag}" value="${value}">\n`
    const hint = [hintOf(field), isRepeatable && 'separate several by spaces'].filter((part) => part).join('; ')
    if (placeholder === undefined) {
      const checked = value === '' ? undefined : html` checked`
      return html`<label><input type="checkbox" name="${flag}" value="on"${checked}> ${label}</label>\n`
    }
    const choices = await view.choicesOf(field)
    const [only] = command.changes && isRequired(field) && choices.length === 1 ? choices : []
    const list = choices.length > 0 ? html` list="${flag}-choices"` : undefined
    return html`<label>${label} <input type="text" name="${flag}" value="${value || (only?.value ?? '')}" placeholder="${example ?? ''}"${list}${flag === focused ? html` autofocus` : undefined}> <small>${hint}</small></label>${list && choiceList(flag, choices)}\n`
  })
  return html`${await Promise.all(shown)}`
}

const choiceList = (flag: string, choices: Awaited<ReturnType<OperatorView['choicesOf']>>) =>
  html`<datalist id="${flag}-choices">${choices.map(({ value, text = '' }) => html`<option value="${value}">${text}</option>`)}</datalist>`

/** Returns an error with the labels of fields in place of flags, unless the flags are those of a command to run. */
export const withLabels = (error: string, { fields }: Command) =>
  Object.entries(flagsIn(fields)).reduce(
    (text, [flag, { label }]) => text.replace(new RegExp(`(?<!ops .*)--${flag}(?![\\w-])`, 'g'), `“${label}”`),
    error,
  )

/** Returns the form that confirms a change. `fields` are its signed fields, `amount` is added to the button. */
export const confirmationForm = (command: Command, fields: Record<string, string>, back: string, amount = ''): Html =>
  html`<form class="change" method="post" action="${pageName(command)}">
${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">\n`)}<p class="actions"><button>${command.title} ${amount}</button> <a class="button" href="${back}">Cancel</a></p>
</form>
`

/** Returns the section with the same command, formatted for a shell. */
export function sameCommand({ name }: Command, { file, ...values }: Values): Html {
  const flags = Object.entries(values).flatMap(([flag, given]) =>
    [given ?? []].flat().map((one) => (one === true ? `--${flag}` : `--${flag}=${one}`)),
  )
  const quoted = [...[file ?? []].flat().map((path) => `./${path}`), ...flags].map((arg) =>
    /^[\w=:.,@/-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`,
  )
  const line = ['ops', name, ...quoted].join(' ')
  return html`<section class="card"><h2>The same on the command line</h2>\n<pre><code>${line}</code></pre></section>\n`
}
