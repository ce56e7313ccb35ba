import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { proseOf } from '../guides/guides.ts'

const ROOT = join(import.meta.dirname, '../..')
const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8')

const filesOf = (folder: string, pattern: RegExp) =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .sort()

/** Words that only this project would use, by the field's terms for them. */
const TERMS: Record<string, RegExp> = {
  'response; return': /\banswer(s|ed|ing)?\b/,
  'error response; reject': /\brefus(al|als|e|es|ed|ing)\b/,
  'requested; filter; criteria': /\b(asked|sought|wanted)\b/,
  'status check; check the status': /\benquir(e|es|ed|y|ies|ing)\b/,
  'notify; report; receive': /\b(told|heard|hears|untold)\b/,
  'store; retain': /\bkept\b/,
  format: /\bspell(s|ed|ing)?\b/,
  'error in input; failure of a system': /\bfault(s|y)?\b/,
  'attacker; operator; merchant; customer': /\b(nobody|whoever|somebody)\b/,
  "merchant's server; store plugin": /\bshops?\b/,
  'status of': /\bbec(ame|omes|ome) of\b/,
  'fallback acquirer; failover': /\bnext acquirer\b/,
  'daily transaction report': /\bday files?\b/,
  'duplicate payment': /\bdouble payments?\b/,
  reversed: /\btak(en|es|e) back\b/,
  'return-URL callback': /\breturn calls?\b/,
  'erase customer data': /\b(forget|forgets|forgot|forgotten)\b/,
  'wait for the database': /\bpatien(ce|t|tly)\b/,
  'event-loop delay': /\blateness\b/,
  'encrypt; decrypt': /\b(un)?seal(s|ed|ing)?\b/,
}

/** What programs, the database and operators use literally, so it stays. */
const LITERALS = [
  // Stored values, labels of metrics, fields of logs and of `--json`.
  ...['double payment', 'day file', 'return call', 'taken back', 'bad answer', 'broken answer', 'answered 410'],
  ...['refused address', '`refused: ', "'refused'", '"refused"', '"refused|', "'enquiry'", "'answer'", 'refusal'],
  ...['toldBy', 'told_by', 'enquiries', 'forgotten:', 'wouldForget', 'byNextAcquirer', 'nextAcquirer', 'returnCall'],
  ...[
    'fault:',
    'faults:',
    'fault?',
    'kept:',
    'as kept',
    ':kept',
    ', kept',
    'answer:',
    ', answer',
    'as answer',
    ', fault',
  ],
  // Settings, commands, flags, metrics, alerts, users, files of systemd.
  ...['SEALING_KEY', 'sealing-key', 'RETURN_CALL', 'return-call', 'forget-customers', 'payments enquire', '--double'],
  ...[
    "'shop'",
    '"shop"',
    'shop:',
    'input shop',
    'strict|shop',
    'strict or shop',
    'NextAcquirerAtWork',
    'next_acquirer',
  ],
  ...[
    'notifications_refused',
    'NotificationsRefused',
    'AcquirerRefuses',
    'WebhookAddressRefused',
    "'nobody'",
    'WantedBy',
  ],
  // Addresses and names in samples.
  ...['SHOP_URL', 'YOUR-SHOP', 'shop.example', 'shop@bank', 'shop.*@bank', 'shop-', 'web shop'],
]

/** Splits identifiers into words, so that `isToldFirst` has the word told. */
const wordsOf = (text: string) =>
  text
    .replaceAll(/([a-z\d])(?=[A-Z])/g, '$1 ')
    .replaceAll('_', ' ')
    .toLowerCase()

function privateWords(text: string, names = /`[\w. -]+`/g): string[] {
  // Text in backticks is a name. In source files only a single word, because templates are in backticks too.
  const prose = LITERALS.reduce((rest, one) => rest.replaceAll(one, ' '), text.replaceAll(names, ' '))
  return prose.split('\n').flatMap((line, index) => {
    const words = wordsOf(line)
    return Object.entries(TERMS).flatMap(([instead, pattern]) => {
      const [word] = pattern.exec(words) ?? []
      return word === undefined ? [] : [`line ${index + 1}: "${word}": ${instead}`]
    })
  })
}

describe('texts use the terms of the field', () => {
  const sources = filesOf('src', /\.(ts|mjs|js|css|yml|cfg|sql|service|timer|conf)$/)
  const texts = ['README.md', ...['src', 'test'].flatMap((folder) => filesOf(folder, /\.md$/))]

  it('source files contain no private word in names, comments or messages', () => {
    expect(sources.length).toBeGreaterThan(200)
    expect(sources.flatMap((file) => privateWords(textOf(file)).map((found) => `${file}, ${found}`))).toEqual([])
  })

  it('READMEs and guides contain no private word', () => {
    expect(texts.length).toBeGreaterThan(50)
    const found = texts.flatMap((file) => {
      const text = file.startsWith('test/') ? textOf(file).replaceAll(/faults?/gi, ' ') : textOf(file)
      return privateWords(text, /`[^`\n]+`/g).map((word) => `${file}, ${word}`)
    })
    expect(found).toEqual([])
  })

  it('test names contain no private word', () => {
    const found = filesOf('test', /\.ts$/).flatMap((file) =>
      testNamesOf(file).flatMap((name) => privateWords(name).map((word) => `${file}: ${name}: ${word}`)),
    )
    expect(found).toEqual([])
  })
})

it('the page of forbidden words names a word of each group', () => {
  const named = [...textOf('src/docs/guides/decisions/forbidden-words.md').matchAll(/`([\w ]+)`/g)].map(
    ([, word]) => word,
  )
  const missing = Object.entries(TERMS).filter(([, pattern]) => !named.some((word = '') => pattern.test(word)))
  expect(missing.map(([instead]) => instead)).toEqual([])
})

it('at most 2 % of the sentences of a guide are longer than 30 words', () => {
  const sentences = filesOf('src/docs/guides', /\.md$/).flatMap((file) =>
    sentencesOf(textOf(file)).map((text) => ({ file, text })),
  )
  expect(sentences.length).toBeGreaterThan(1_000)
  const long = sentences.filter(({ text }) => text.split(/\s+/).length > 30)
  expect(long.map(({ file, text }) => `${file}: ${text}`).slice(Math.floor(sentences.length / 50))).toEqual([])
})

/** Names that a file gives to `it`, `test` and `describe`, also by `each`. */
function testNamesOf(file: string): string[] {
  const names: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const called = node.expression.getText(source)
      const [name] = node.arguments
      if (
        /^(it|test|describe)\b/.test(called) &&
        name &&
        (ts.isStringLiteralLike(name) || ts.isTemplateExpression(name))
      )
        names.push(name.getText(source))
    }
    ts.forEachChild(node, visit)
  }
  const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest)
  visit(source)
  return names
}

/** Sentences of a Markdown text: of its paragraphs, list items and cells of tables. */
function sentencesOf(markdown: string): string[] {
  return proseOf(markdown)
    .split(/\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) ?)/)
    .flatMap((block) => (block.trimStart().startsWith('|') ? block.split('|') : [block]))
    .flatMap((block) => block.replaceAll(/\s+/g, ' ').split(/(?<=[.!?:;])\s+(?=[A-Z`"*[])/))
    .map((sentence) => sentence.trim())
    .filter((sentence) => /\p{L}/u.test(sentence))
}
