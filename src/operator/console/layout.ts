import { type Html, html } from '../../platform/html.ts'
import { toIndianDigits } from '../../platform/money.ts'
import type { Command } from '../commands/command.ts'
import { htmlPage } from '../page.ts'
import { neutralize } from '../terminal/harmless.ts'
import { optionsOf } from '../terminal/options.ts'
import {
  columnOf,
  flagsOf,
  IDENTIFIERS,
  labelsOf,
  type OperatorView,
  type PageFields,
  pageName,
  recordOf,
} from './view.ts'

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

/** Returns a page of the console, without characters that reorder its text; undefined `view` omits the navigation. */
export function pageOf({ title, beside, body, text, result, tab }: Page, view: OperatorView | undefined): string {
  const all = html`<a class="skip" href="#text">Skip to content</a>
${view && header(view, text)}<main id="text">
${view && crumbs(view)}<div class="title"><h1>${title}</h1>${beside}</div>
${result}${body}</main>
`
  return neutralize(htmlPage({ title: tab ? `${tab} · ${title}` : title, styles: 'console.css', body: all }))
}

const header = (view: OperatorView, text = '') => html`<header>
<a class="brand" href=".">UPI payments</a>
<form role="search" action="search"><input type="search" name="q" value="${text}" aria-label="UTR, order number, amount of today, merchant, or any identifier" placeholder="UTR, order number, ₹499 today, merchant…" required> <button>Search</button></form>
<span class="quiet">${view.operator.operator}${view.operator.rights.includes('act') ? undefined : ' (read only)'} · IST</span>
</header>
<nav aria-label="Lists"><details><summary>Lists</summary></details><ul>
${listsOf(view).map(({ name }, index, lists) => {
  const { group, label } = labelsOf(name)
  const isFirst = group !== label && group !== labelsOf(lists[index - 1]?.name ?? '').group
  const current = isHere(name, view) ? html` aria-current="page"` : undefined
  const count = view.open[name] ? html` <span class="count">${toIndianDigits(view.open[name])}</span>` : undefined
  return html`${isFirst ? html`<li class="group">${group}</li>\n` : undefined}<li><a href="${pageName(name)}${count && '?open=on'}" class="${group === label ? '' : 'inner'}"${current}>${label}${count}</a></li>\n`
})}</ul></nav>
`

/** Returns the commands that read lists. A command that only reads one record by the record's column is no list. */
const listsOf = ({ commands }: OperatorView) =>
  commands.filter((command) => {
    const flags = flagsOf(command)
    return !command.changes && !(flags.length > 0 && flags.every(columnOf))
  })

const isHere = (name: string, { here }: OperatorView) => here.split('?')[0] === pageName(name)

/** Returns a link to the first page of the group, such as the search of payments for an order. */
function crumbs(view: OperatorView): Html | undefined {
  const groupOf = (name = '') => name.split(/[ ?-]/)[0]
  const first = view.commands.find(({ name, changes }) => !changes && groupOf(name) === groupOf(view.here))
  if (first === undefined || isHere(first.name, view)) return undefined
  return html`<nav class="crumbs" aria-label="Breadcrumb"><a href="${pageName(first.name)}">${labelsOf(first.name).group}</a> ›</nav>\n`
}

/** Returns the filters of a command that reads, if it has any. The search of every page replaces identifiers. */
export const filterForm = (command: Command, fields: PageFields): Html =>
  flagsOf(command).length === 0
    ? html``
    : html`<form class="filters" action="${pageName(command.name)}">
${inputs(command, fields)}<button>Show</button>
</form>
`

/** Returns the form of a change, whose figures the next page shows for confirmation. `back` is the page that follows. */
export const changeForm = (command: Command, fields: PageFields, back: string): Html =>
  html`<form class="change" method="post" action="${pageName(command.name)}"${command.takesFile ? html` enctype="multipart/form-data"` : undefined}>
${command.takesFile ? html`<label>File <input type="file" name="file" required></label>\n` : undefined}${inputs(command, fields)}<input type="hidden" name="back" value="${back}">
<p class="actions"><button>Continue…</button> <a class="button" href="${back}">Cancel</a></p>
</form>
`

/** Returns an input for each flag of the command, which is hidden for the flag that names the record. */
function inputs(command: Command, fields: PageFields): Html {
  const textOf = (flag: string) => (typeof fields[flag] === 'string' ? fields[flag] : '')
  const record = recordOf(command, fields) ?? ''
  const excluded = alternativesTo(record, command)
  return html`${optionsOf(command).map(([option, text]) => {
    const [, flag = '', placeholder = ''] = /^--([a-z-]+) ?(.*)/.exec(option) ?? []
    const value = textOf(flag)
    const isSearched = !command.changes && IDENTIFIERS.includes(flag) && value === ''
    if (!flagsOf(command).includes(flag) || excluded.includes(flag) || isSearched) return undefined
    if (flag === record) return html`<input type="hidden" name="${flag}" value="${value}">\n`
    const [label, hint = ''] = labelAndHint(text)
    return command.switches.includes(flag)
      ? html`<label><input type="checkbox" name="${flag}" value="on"${value === '' ? undefined : html` checked`}> ${label}</label>\n`
      : html`<label>${label} <input type="${TYPES[placeholder] ?? 'text'}" name="${flag}" value="${value}"> <small>${hint.replace(')', '')}</small></label>\n`
  })}`
}

/** Returns the flags that the usage excludes beside `flag`, as in `(--delivery ID | --mid MID --since TIME)`. */
function alternativesTo(flag: string, { usage, flags }: Command): readonly string[] {
  const flagsIn = (text: string) => flags.filter((one) => new RegExp(`--${one}(?![\\w-])`).test(text))
  const group = usage.match(/\([^()]*\)/g)?.find((text) => flagsIn(text).includes(flag)) ?? ''
  const alternatives = group.split(' | ').map(flagsIn)
  const own = alternatives.filter((one) => one.includes(flag)).flat()
  return alternatives.flat().filter((one) => !own.includes(one))
}

const labelAndHint = (text: string) =>
  text.replace('repeatable', 'separate several by spaces').split(/(?:[;,(] ?| (?=such as ))(.*)/)

/** Returns an error with the labels of fields in place of flags, unless the flags are those of a command to run. */
export const withLabels = (error: string, command: Command) =>
  optionsOf(command).reduce((text, [option, about]) => {
    const flag = new RegExp(`(?<!ops .*)${option.split(' ')[0]}(?![\\w-])`, 'g')
    return text.replace(flag, `“${labelAndHint(about)[0]?.trim()}”`)
  }, error)

/** Types of inputs by the placeholder of their value in the usage. */
const TYPES: Readonly<Record<string, string>> = { DAY: 'date', 'YYYY-MM': 'month', TIME: 'datetime-local' }

/** Returns the form that confirms a change. `fields` are its signed fields, `amount` is added to the button. */
export const confirmationForm = (
  command: Command,
  fields: Readonly<Record<string, string>>,
  { back, amount = '' }: { back: string; amount: string | undefined },
): Html =>
  html`<form class="change" method="post" action="${pageName(command.name)}">
${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">\n`)}<p class="actions"><button>${labelsOf(command.name).label} ${amount}</button> <a class="button" href="${back}">Cancel</a></p>
</form>
`

/** Returns the section with the same command, formatted for a shell. */
export function sameCommand({ name }: Command, args: readonly string[]): Html {
  const quoted = args.map((arg) => (/^[\w=:.,@/-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`))
  const line = ['ops', name, ...quoted].join(' ')
  return html`<section class="card"><h2>The same on the command line</h2>\n<pre><code>${line}</code></pre></section>\n`
}
