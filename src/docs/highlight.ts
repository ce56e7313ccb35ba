import { createRequire } from 'node:module'

/**
 * The part of highlight.js that this module uses. The library's own types would add browser types to the whole project.
 */
type Highlighter = {
  registerLanguage: (name: string, language: unknown) => void
  getLanguage: (name: string) => unknown
  configure: (options: { classPrefix: string }) => void
  highlight: (code: string, options: { language: string }) => { value: string }
}

const require = createRequire(import.meta.url)
const highlighter = require('highlight.js/lib/core') as Highlighter
highlighter.configure({ classPrefix: 'hl-' })

/** Languages in fenced code blocks, some of which have another name in highlight.js. */
const LANGUAGES = ['sh', 'js', 'ts', 'json', 'python', 'php', 'java', 'sql', 'ini', 'yaml', 'nginx', 'xml']
const NAMES: Record<string, string> = { sh: 'bash', js: 'javascript', ts: 'typescript' }
for (const name of LANGUAGES)
  highlighter.registerLanguage(name, require(`highlight.js/lib/languages/${NAMES[name] ?? name}`))

/**
 * Returns the HTML for a code sample, with a class for each kind of token, or undefined for a language without
 * highlighting.
 */
export function highlight(code: string, language: string): string | undefined {
  if (!highlighter.getLanguage(language)) return undefined
  // Replaces each placeholder with a plain word while highlight.js reads the sample, because a brace could split the
  // placeholder into tokens.
  const plain = code.replaceAll(/\{([A-Z]+_[A-Z]+)\}/g, 'placeholder$1placeholder')
  return highlighter.highlight(plain, { language }).value.replaceAll(/placeholder([A-Z_]+)placeholder/g, '{$1}')
}
