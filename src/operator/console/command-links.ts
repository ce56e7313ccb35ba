import { type Html, html } from '../../platform/html.ts'
import type { Command } from '../commands/command.ts'
import { addressOf, commandsOf, type OperatorView } from './view.ts'

/** A flag with a value, such as ` --refund 1a2b` or ` --reason 'returned at the bank'`, in a text. */
const FLAG = / --([a-z-]+)(?:[ =](?!--)('[^']*'|[\w.:@/-]*[\w]))?/g

/**
 * Returns a text of a command in which the commands that the console offers, such as `ops refunds done --refund 1a2b`,
 * are links with the label of their button. Placeholders of values, such as `ID`, are omitted.
 */
export function withLinks(text: string, view: OperatorView): Html {
  const commands = new Map(commandsOf(view).map((command) => [command.name, command]))
  if (!text.includes('ops ') || commands.size === 0) return html`${text}`
  const names = [...commands.keys()].sort((one, other) => other.length - one.length).join('|')
  const pattern = new RegExp(`ops (${names})(?![\\w-]| [a-z-]+ --)((?:${FLAG.source})*)`, 'g')
  const parts: Html[] = []
  let end = 0
  for (const found of text.matchAll(pattern)) {
    const [whole, name = '', flags = ''] = found
    const given = [...flags.matchAll(FLAG)].map(([, flag = '', value = 'on']) => [flag, value.replaceAll("'", '')])
    const literal = given.filter(([, value = '']) => !/^[A-Z]+$/.test(value) && !value.includes('…'))
    const command = commands.get(name) as Command
    const address = addressOf(command, { ...Object.fromEntries(literal), ...(command.changes && { back: view.here }) })
    parts.push(html`${text.slice(end, found.index)}<a href="${address}">${command.title}</a>`)
    end = found.index + whole.length
  }
  return html`${parts}${text.slice(end)}`
}
