import { createRequire } from 'node:module'
import { Marked, Renderer, type Token, type Tokens } from 'marked'
import { html, trustedHtml } from '../platform/html.ts'

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

/** A chapter as HTML, and its sections for the search. */
export type Chapter = { title: string; html: string; hasSamples: boolean; sections: Section[] }

/**
 * The text below one heading, without markup. `anchor` is empty for the text between the title and the first heading.
 */
type Section = { heading: string; anchor: string; text: string }

/**
 * Renders a chapter's Markdown. Throws if two headings have the same anchor. The build calls this function, so that an
 * installation needs neither this file nor its libraries. A checkout calls it at the first request for a chapter.
 */
export function renderChapter(markdown: string): Chapter {
  const marked = createMarked()
  const tokens = groupSamples(marked.lexer(markdown))
  const headings = tokens.filter((token): token is Tokens.Heading => token.type === 'heading' && token.depth > 1)
  const anchors = headings.map(({ text }) => anchorOf(text))
  const repeated = anchors.find((name, index) => anchors.indexOf(name) !== index)
  if (repeated !== undefined) throw new Error(`Two headings of a chapter have the anchor #${repeated}`)

  const title = tokens.find((token): token is Tokens.Heading => token.type === 'heading' && token.depth === 1)
  // Inserts the table of contents after the title and the first paragraph, which introduces the chapter.
  const first = tokens.findIndex((token) => token.type !== 'heading' && token.type !== 'space')
  const lead = tokens[first]?.type === 'paragraph' ? first + 1 : Math.max(first, 0)
  const toc: Token = { type: 'html', raw: '', text: contents(headings, marked), block: true, pre: false }
  return {
    title: title === undefined ? '' : plainText(title.tokens),
    html: layOut([...tokens.slice(0, lead), toc, ...tokens.slice(lead)], marked),
    hasSamples: tokens.some(isSample),
    sections: sectionsOf(tokens),
  }
}

const isSample = ({ type }: Token) => type === 'code' || type === 'samples'

/**
 * Returns HTML that pairs each text with the samples that follow the text, because a wide screen shows both side by
 * side.
 */
function layOut(tokens: readonly Token[], marked: Marked): string {
  const pairs: { prose: Token[]; samples: Token[] }[] = []
  let openDetails = 0
  for (const token of tokens) {
    // Samples inside <details> are not moved beside the text.
    const beside = isSample(token) && openDetails === 0
    if (token.type === 'html') openDetails += occurrences(token.raw, '<details') - occurrences(token.raw, '</details')
    const last = pairs.at(-1)
    const continues = last && (beside || token.type === 'space' || (last.samples.length === 0 && !isSection(token)))
    const pair = continues ? last : { prose: [], samples: [] }
    if (pair !== last) pairs.push(pair)
    pair[beside ? 'samples' : 'prose'].push(token)
  }
  const parts = pairs.map(({ prose, samples }) => {
    const text = `<div class="prose">\n${marked.parser(prose)}</div>\n`
    if (samples.length === 0) return text
    return `<div class="pair">\n${text}<div class="samples">\n${marked.parser(samples)}</div>\n</div>\n`
  })
  return parts.join('')
}

const occurrences = (text: string, part: string) => text.split(part).length - 1

const isSection = (token: Token) => token.type === 'heading' && token.depth === 2

/**
 * Returns the anchor of a heading in the format that code hosts use, so that a link works both there and on the pages
 * of this service.
 */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

/** Returns the list "On this page", or an empty text for a short chapter with fewer than three headings. */
function contents(headings: readonly Tokens.Heading[], marked: Marked): string {
  if (headings.length < 3) return ''
  const entries = headings.map(
    ({ depth, tokens, text }) =>
      `<li class="depth-${depth}"><a href="#${anchorOf(text)}">${marked.Parser.parseInline(tokens)}</a></li>\n`,
  )
  return `<nav class="contents" aria-labelledby="contents">
<p id="contents">On this page</p>
<ol>
${entries.join('')}</ol>
</nav>
`
}

type Samples = Tokens.Generic & { type: 'samples'; samples: Tokens.Code[] }

/**
 * Replaces adjacent fenced code blocks, separated only by blank lines, with one token of type `samples` if they are
 * alternatives. Blocks are alternatives if each is in a programming language or has a label of its own, and if no label
 * occurs twice.
 */
function groupSamples(tokens: readonly Token[]): Token[] {
  const grouped: Token[] = []
  let run: Tokens.Code[] = []
  const closeRun = () => {
    const labels = new Set(run.map((token) => labelOf(token, true)))
    if (run.length > 1 && labels.size === run.length && run.every(isAlternative))
      grouped.push({ type: 'samples', raw: '', samples: run } satisfies Samples)
    else grouped.push(...run)
    run = []
  }
  for (const token of tokens) {
    if (token.type === 'code' && token.codeBlockStyle !== 'indented') run.push(token as Tokens.Code)
    else if (token.type !== 'space' || run.length === 0) {
      closeRun()
      if (token.type === 'list') for (const item of token.items) item.tokens = groupSamples(item.tokens)
      else if (token.type === 'blockquote') token.tokens = groupSamples(token.tokens ?? [])
      grouped.push(token)
    }
  }
  closeRun()
  return grouped
}

const LABELS: Record<string, string> = {
  ...{ sh: 'Shell', console: 'Terminal', text: 'Text', csv: 'CSV', json: 'JSON', js: 'Node.js', ts: 'TypeScript' },
  ...{ python: 'Python', php: 'PHP', java: 'Java', sql: 'SQL', ini: 'INI', yaml: 'YAML', caddyfile: 'Caddyfile' },
  ...{ nginx: 'nginx', xml: 'XML' },
}

const isAlternative = ({ lang = '' }: Tokens.Code) => /^(sh|js|python|php|java)$|\s/.test(lang.trim())

/** Returns the label in the info string of a fenced code block, such as `json 200`, or the label of its language. */
function labelOf({ lang = '' }: Tokens.Code, isTab = false): string {
  const [language = '', ...label] = lang.split(/\s+/)
  return label.join(' ') || (isTab && language === 'sh' ? 'curl' : (LABELS[language] ?? language))
}

function sample(token: Tokens.Code, label: string): string {
  const [language = ''] = (token.lang ?? '').split(/\s+/)
  const code = `${token.text.replace(/\n$/, '')}\n`
  const inner = trustedHtml(highlight(code, language) ?? html`${code}`.toString())
  // Wide samples scroll in a box of their own. `tabindex` makes the box scrollable by keyboard.
  return html`<div class="code"><div class="bar"><span>${label}</span></div><pre tabindex="0"><code class="language-${language}">${inner}</code></pre></div>
`.toString()
}

/**
 * Returns the name of the property in which the tabs of a group differ. The browser stores the chosen tab under this
 * name, except for `Response`.
 */
function nameOf(labels: readonly string[]): string {
  if (labels.every((label) => /^\d{3}\b/.test(label))) return 'Response'
  return labels.every((label) => label === 'curl' || Object.values(LABELS).includes(label)) ? 'Language' : 'Variant'
}

/** Creates a separate Marked for each chapter, because groups of tabs are numbered within their page. */
function createMarked(): Marked {
  let groups = 0
  return new Marked({
    extensions: [
      {
        name: 'samples',
        renderer(token) {
          const group = `tabs-${++groups}`
          const labels = (token as Samples).samples.map((one) => labelOf(one, true))
          const inputs = labels.map((label, index) => {
            const id = `${group}-${index + 1}`
            const checked = index === 0 ? html` checked` : undefined
            return html`<input type="radio" name="${group}" id="${id}"${checked}><label for="${id}">${label}</label>\n`
          })
          const panels = (token as Samples).samples.map((one, index) => sample(one, labels[index] as string))
          return html`<div class="tabs" role="group" aria-label="${nameOf(labels)}">
${inputs}${trustedHtml(panels.join(''))}</div>
`.toString()
        },
      },
    ],
    renderer: {
      heading({ tokens, depth, text }) {
        const inner = this.parser.parseInline(tokens)
        if (depth === 1) return `<h1>${inner}</h1>\n`
        return `<h${depth} id="${anchorOf(text)}"><a href="#${anchorOf(text)}">${inner}</a></h${depth}>\n`
      },
      code: (token) => sample(token, labelOf(token)),
      // Removes `.md` from links between chapters. Links name Markdown files so that they also work on a code host.
      link({ href, title, tokens }) {
        const target = /^[a-z]+:|^\{/.test(href) ? href : href.replace(/\.md(?=#|$)/, '')
        const titled = title ? html` title="${title}"` : undefined
        return html`<a href="${target}"${titled}>${trustedHtml(this.parser.parseInline(tokens))}</a>`.toString()
      },
      table(token) {
        // Replaces an empty corner cell with a `td`, because screen readers would announce an empty heading.
        const table = Renderer.prototype.table.call(this, token).replaceAll('<th></th>', '<td></td>')
        return `<div class="table" tabindex="0">${table}</div>\n`
      },
    },
  })
}

function sectionsOf(tokens: readonly Token[]): Section[] {
  const sections: Section[] = [{ heading: '', anchor: '', text: '' }]
  for (const token of tokens) {
    if (token.type === 'heading') {
      const heading = token as Tokens.Heading
      if (heading.depth === 1) continue
      sections.push({ heading: plainText(heading.tokens), anchor: anchorOf(heading.text), text: '' })
    } else {
      const section = sections.at(-1) as Section
      section.text = `${section.text} ${plainText([token])}`.replaceAll(/\s+/g, ' ').trim()
    }
  }
  return sections.filter(({ heading, text }) => heading !== '' || text !== '')
}

/** Returns the words in tokens. Omits samples, because a search for `curl` would otherwise find every sample. */
function plainText(tokens: readonly Token[] = []): string {
  return tokens
    .map((token) => {
      if (token.type === 'code' || token.type === 'samples' || token.type === 'html') return ''
      if (token.type === 'table') {
        const { header, rows } = token as Tokens.Table
        return [header, ...rows].map((row) => row.map((cell) => plainText(cell.tokens)).join(' ')).join(' ')
      }
      if (token.type === 'list') return (token as Tokens.List).items.map((item) => plainText(item.tokens)).join(' ')
      if (token.type === 'br') return ' '
      if ('tokens' in token && token.tokens) return `${plainText(token.tokens)}${isBlock(token) ? ' ' : ''}`
      return 'text' in token ? String(token.text) : ''
    })
    .join('')
}

const isBlock = ({ type }: Token) => type === 'paragraph' || type === 'blockquote' || type === 'text'

/**
 * Returns the HTML for a code sample, with a class for each kind of token, or undefined for a language without
 * highlighting.
 */
function highlight(code: string, language: string): string | undefined {
  if (!highlighter.getLanguage(language)) return undefined
  // Replaces each placeholder with a plain word while highlight.js reads the sample, because a brace could split the
  // placeholder into tokens.
  const plain = code.replaceAll(/\{([A-Z]+_[A-Z]+)\}/g, 'placeholder$1placeholder')
  return highlighter.highlight(plain, { language }).value.replaceAll(/placeholder([A-Z_]+)placeholder/g, '{$1}')
}
