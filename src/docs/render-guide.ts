import { Marked, Renderer, type Tokens } from 'marked'

/**
 * Renders a guide's Markdown as HTML, with the contents in `nav` and the text in `main`. Throws when two headings have
 * the same anchor. Called by the build, so that an installation needs neither this file nor its library, and in a
 * checkout at the first request of a guide.
 */
export function renderGuide(markdown: string): string {
  const tokens = marked.lexer(markdown)
  const headings = tokens.filter((token): token is Tokens.Heading => token.type === 'heading' && token.depth > 1)
  const anchors = headings.map(({ text }) => anchor(text))
  const twice = anchors.find((name, index) => anchors.indexOf(name) !== index)
  if (twice !== undefined) throw new Error(`Two headings of a guide have the anchor #${twice}`)
  const entries = headings.map(
    ({ depth, tokens, text }) =>
      `<li class="depth-${depth}"><a href="#${anchor(text)}">${marked.Parser.parseInline(tokens)}</a></li>`,
  )
  return `<nav class="contents" aria-label="On this page">
<ol>
${entries.join('\n')}
</ol>
</nav>
<main class="guide" id="text">
${marked.parser(tokens)}</main>
`
}

const marked = new Marked({
  renderer: {
    heading({ tokens, depth, text }) {
      const inner = this.parser.parseInline(tokens)
      if (depth === 1) return `<h1>${inner}</h1>\n`
      return `<h${depth} id="${anchor(text)}"><a href="#${anchor(text)}">${inner}</a></h${depth}>\n`
    },
    // Wide code and tables scroll in a box of their own. `tabindex` makes the box scrollable by keyboard.
    code(token) {
      const html = Renderer.prototype.code.call(this, token).replace('<pre>', '<pre tabindex="0">')
      return `<div class="code">${html.trim()}</div>\n`
    },
    table(token) {
      return `<div class="table" tabindex="0">${Renderer.prototype.table.call(this, token)}</div>\n`
    },
  },
})

/** Anchor of a heading, made as code hosts make anchors, so that a link works there and on our pages. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}
