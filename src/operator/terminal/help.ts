import type { Command } from '../commands/command.ts'
import { type Field, hintOf, usageOf as usageOfFields } from '../commands/field.ts'
import { flagsOf } from './parse.ts'

export type Groups = Readonly<Record<string, readonly Command[]>>

const MORE = 'Run "ops COMMAND --help" for the options of a command.'

/** Returns the help texts for commands in groups with titles. */
export function createHelp(groups: Groups) {
  const all = Object.values(groups).flat()
  const nameWidth = Math.max(...all.map(({ name }) => name.length))
  const summaryLines = (commands: readonly Command[]) =>
    commands.map(({ name, summary }) => `  ${name.padEnd(nameWidth)}  ${summary}`).join('\n')

  /** Returns the help for all commands whose first word is `word`, otherwise the overview. */
  function ofWord(word: string): string {
    const commands = all.filter(({ name }) => name.split(' ')[0] === word)
    if (commands.length > 0)
      return `usage:\n${commands.map((one) => `${usageOf(one)}\n      ${one.summary}`).join('\n')}\n\n${MORE}`
    const overview = Object.entries(groups).map(([title, group]) => `${title}\n${summaryLines(group)}`)
    return ['usage:\n  ops COMMAND [options]', ...overview, MORE].join('\n\n')
  }

  return {
    /** Returns the help for `command`. Without `command`, returns the help for what was typed. */
    long(command: Command | undefined, [word = '']: string[]): string {
      if (command === undefined) return ofWord(word)
      const subcommands = all.filter(({ name }) => name.startsWith(`${command.name} `))
      return [
        `usage:\n${usageOf(command)}`,
        wrap(`${command.summary}. ${command.note ?? ''}`.trimEnd().split(' ')),
        `Options:\n${optionLines(flagsOf(command)).join('\n')}`,
        ...(subcommands.length === 0 ? [] : [`Subcommands:\n${summaryLines(subcommands)}`]),
      ].join('\n\n')
    },

    /**
     * Returns the help to print below the error for a mistyped command. Options are omitted, so that the error stays on
     * the screen.
     */
    short: (command: Command | undefined, [word = '']: string[]) =>
      command ? `usage:\n${usageOf(command)}\n\n${MORE}` : ofWord(word),
  }
}

/** Breaks the usage into lines that fit the terminal. A flag stays on the same line as its value. */
function usageOf({ name, fields, csv }: Command): string {
  const format = csv === 'plain' ? ['[--csv', '[--for excel]]'] : csv ? ['[--csv]'] : []
  return wrap([`  ops ${name}`, ...usageOfFields(fields), ...format], '      ')
}

const LINE_WIDTH = 80

/** Joins parts to lines of LINE_WIDTH. Every line except the first begins with `indent`. */
function wrap(parts: readonly string[], indent = ''): string {
  const [first = '', ...others] = parts
  const lines = [first]
  for (const part of others) {
    const line = lines.at(-1) ?? ''
    if (line.length + 1 + part.length > LINE_WIDTH) lines.push(`${indent}${part}`)
    else lines[lines.length - 1] = `${line} ${part}`
  }
  return lines.join('\n')
}

function optionLines(flags: Readonly<Record<string, Field>>): string[] {
  const options = Object.entries(flags).map(([name, field]) => {
    const hint = [hintOf(field), field.isRepeatable && 'repeatable'].filter((part) => part).join('; ')
    const option = [`--${name}`, field.placeholder].filter(Boolean).join(' ')
    return [option, hint ? `${field.label} (${hint})` : field.label] as const
  })
  const width = Math.min(OPTION_WIDTH, Math.max(...options.map(([option]) => option.length)))
  const indent = ' '.repeat(width + 4)
  return options.map(([option, text]) => {
    const lead = option.length > width ? `  ${option}\n${indent}` : `  ${option.padEnd(width)}  `
    const [first = '', ...others] = text.split(' ')
    return lead + wrap([`${indent}${first}`, ...others], indent).slice(indent.length)
  })
}

/** Width of the longest option whose text starts on the same line. */
const OPTION_WIDTH = 26
