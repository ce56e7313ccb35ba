import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Lines that begin with one of these are text, help and messages, which may change. All other lines must stay. */
const TEXT = '| '
const MESSAGE = '! '

export type Recorded = { code: number; audit: object[]; stdout: string; stderr: string }

/** Random values that no step named, in the order in which the patterns are tried. */
const RANDOM: Record<string, RegExp> = {
  endpoint: /\bep_[0-9a-f]{16}/g,
  'public key': /\bpk_[0-9a-f]{24}/g,
  'secret key': /\bsk_[\w-]{43}/g,
  'signing secret': /\bwhsec_[\w+/]{43}=/g,
  uuid: /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g,
  id: /(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])/g,
  difference: /\b[0-9]{6}[0-9a-f]{10}\b/g,
  exception: /\b(?=\d*[a-f])[0-9a-f]{12}\b/g,
}

/**
 * Returns a function that replaces random values by stable names: a value of `names` by its name, every other value by
 * its kind and its number within one record.
 */
function normalizer(names: ReadonlyMap<string, string>): (text: string) => string {
  const found = new Map<string, string>()
  const counts: Record<string, number> = {}
  const nameOf = (kind: string, value: string) => {
    if (!found.has(value)) {
      counts[kind] = (counts[kind] ?? 0) + 1
      found.set(value, `<${kind} ${counts[kind]}>`)
    }
    return found.get(value) as string
  }
  const known = [...names].sort(([one], [other]) => other.length - one.length)
  return (text) => {
    const named = known.reduce((all, [value, name]) => all.replaceAll(value, `<${name}>`), text)
    return Object.entries(RANDOM)
      .reduce((all, [kind, pattern]) => all.replace(pattern, (value) => nameOf(kind, value)), named)
      .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:<port>')
      .replace(/(?<=ops: using database )\w+/, '<database>')
      .replace(/(?<="databaseBytes": )\d+|(?<=information {2}database +)[\d.]+ MB/, '<size>')
  }
}

/** Formats a run of the command `line`. What must stay precedes the text, so that the text numbers no value of it. */
export function format(line: string, { code, audit, stdout, stderr }: Recorded, names: ReadonlyMap<string, string>) {
  const normalize = normalizer(names)
  const isJson = / --json\b/.test(line) && code === 0
  const isData = isJson || / --csv\b/.test(line)
  const linesOf = (prefix: string, text: string) =>
    text === ''
      ? []
      : text
          .replace(/\n$/, '')
          .split('\n')
          .map((one) => `${prefix}${one}`.trimEnd())
  return [
    `$ ops ${line}`.trimEnd(),
    `exit ${code}`,
    ...audit.map((row) => `audit ${indent(JSON.stringify(row))}`),
    ...linesOf(isData ? '' : TEXT, isJson ? indent(stdout) : stdout),
    ...linesOf(MESSAGE, stderr),
  ]
    .map(normalize)
    .join('\n')
}

/** Breaks JSON into lines and changes nothing else: numbers and keys stay as written. */
function indent(json: string): string {
  let depth = 0
  return json.trim().replace(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{},:]/g, (token) => {
    if (token === '[' || token === '{') return `${token}\n${'  '.repeat(++depth)}`
    if (token === ']' || token === '}') return `\n${'  '.repeat(--depth)}${token}`
    if (token === ',') return `,\n${'  '.repeat(depth)}`
    return token === ':' ? ': ' : token
  })
}

/** Prints all differences of two folders. Returns whether only text, help and messages differ. */
export function compare(before: string, after: string): boolean {
  const files = [...new Set([before, after].flatMap((folder) => readdirSync(folder)))].sort()
  const fixed = (folder: string, file: string) =>
    readdirSync(folder).includes(file) &&
    readFileSync(join(folder, file), 'utf8')
      .split('\n')
      .filter((line) => !/^[|!]/.test(line))
      .join('\n')
  const changed = files.filter((file) => fixed(before, file) !== fixed(after, file))
  spawnSync('diff', ['-ruN', before, after], { stdio: 'inherit' })
  if (changed.length > 0) console.error(`JSON, CSV, exit codes or audit differ: ${changed.join(', ')}`)
  return changed.length === 0
}
