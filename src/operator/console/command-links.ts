import { type Html, html } from '../../platform/html.ts'
import { addressOf, labelsOf, type OperatorView } from './view.ts'

/** A flag with a value, such as ` --refund 1a2b` or ` --reason 'returned at the bank'`, in a text. */
const FLAG = / --([a-z-]+)(?:[ =](?!--)('[^']*'|[\w.:@/-]*[\w]))?/g

/**
 * Returns a text of a command in which the commands that the console offers, such as `ops refunds done --refund 1a2b`,
 * are links with the label of their button. Placeholders of values, such as `ID`, are omitted.
 */
export function withLinks(text: string, view: OperatorView): Html {
  const names = view.commands.map(({ name }) => name).sort((one, other) => other.length - one.length)
  if (!text.includes('ops ') || names.length === 0) return html`${text}`
  const pattern = new RegExp(`ops (${names.join('|')})(?![\\w-]| [a-z-]+ --)((?:${FLAG.source})*)`, 'g')
  const parts: Html[] = []
  let end = 0
  for (const found of text.matchAll(pattern)) {
    const [whole, name = '', flags = ''] = found
    const given = [...flags.matchAll(FLAG)].map(([, flag = '', value = 'on']) => [flag, value.replaceAll("'", '')])
    const literal = given.filter(([, value = '']) => !/^[A-Z]+$/.test(value) && !value.includes('…'))
    const address = addressOf(name, {
      ...Object.fromEntries(literal),
      ...(isChange(name, view) && { back: view.here }),
    })
    parts.push(html`${text.slice(end, found.index)}<a href="${address}">${labelsOf(name).label}</a>`)
    end = found.index + whole.length
  }
  return html`${parts}${text.slice(end)}`
}

const isChange = (name: string, { commands }: OperatorView) =>
  commands.some((command) => command.name === name && command.changes)
