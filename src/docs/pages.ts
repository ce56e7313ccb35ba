import { type Html, html, trustedHtml } from '../platform/html.ts'
import { chaptersOf, GUIDES, type GuideName, guideOf } from './chapters.ts'
import type { Chapter } from './render-chapter.ts'
import { chaptersOfSite, filledIn, groupOf, type Site } from './site.ts'

/**
 * The pages below /docs. Links between these pages are relative, because a proxy may serve the service under a path.
 */

/** A site with its chapter titles by path, which the navigation shows. */
export type TitledSite = Site & { titles: Record<string, string> }

const SUMMARY =
  'Accept UPI payments in India: create a payment, let the customer pay with any UPI app, check its status.'

/** Returns the page /docs, which lists the guides and their chapters by task. */
export function indexPage(site: TitledSite): string {
  const isPublic = site.port === 'public'
  return page(isPublic ? 'UPI payments' : 'Operator documentation', {
    site,
    path: '',
    body: html`<main class="guide index" id="text">
<h1>${isPublic ? 'UPI payments' : 'Operator documentation'}</h1>
<p>${isPublic ? SUMMARY : 'Install, run and upgrade the service, and connect it to acquirers.'}</p>
${site.guides.map((guide) => guideCard(site, guide))}
${isPublic ? referenceCard() : publicDocsCard(site)}
</main>`,
  })
}

function guideCard(site: TitledSite, guide: GuideName): Html {
  const { title, summary } = GUIDES[guide]
  const groups = Object.entries<readonly string[]>(GUIDES[guide].groups)
  const lists = groups.map(([group, names]) => {
    const heading = groups.length > 1 ? html`<h3>${group}</h3>\n` : undefined
    const links = names.map((name) => {
      const chapter = `${guide}/${name}`
      return html`<li><a href="docs/${chapter}">${site.titles[chapter]}</a></li>\n`
    })
    return html`<div>
${heading}<ul>
${links}</ul>
</div>
`
  })
  return html`<section aria-labelledby="${guide}">
<h2 id="${guide}">${title}</h2>
<p>${summary}</p>
<div class="groups">
${lists}</div>
</section>
`
}

const referenceCard = () => html`<section aria-labelledby="reference">
<h2 id="reference">API reference</h2>
<p>Every operation with its fields, responses and errors.</p>
<ul>
<li><a href="docs/reference">API reference</a>, which also sends requests</li>
<li><a href="openapi-merchant.json">openapi-merchant.json</a>, for Postman, Insomnia and code generators</li>
<li><a href="openapi.json">openapi.json</a>, the same with the operations of acquirers and health checks</li>
<li><a href="llms.txt">llms.txt</a>, the guides as Markdown for language models</li>
</ul>
<p>The operator’s documentation is at <code>/docs</code> of the operator’s port (<code>OPS_PORT</code>, 3001 by default), which is not
public.</p>
</section>`

const publicDocsCard = ({ publicUrl }: Site) => html`<section aria-labelledby="public">
<h2 id="public">API guides</h2>
<p>The guides for merchants, partners and store plugins are public.</p>
<ul>
<li><a href="${publicUrl}/docs">Public documentation</a></li>
<li><a href="llms.txt">llms.txt</a>, this documentation as Markdown for language models</li>
</ul>
</section>`

/** Returns the file /llms.txt, which lists the chapters for language models in the format of llmstxt.org. */
export function llmsText(site: TitledSite, address: string): string {
  const guides = site.guides.map((guide) => {
    const links = chaptersOf(guide).map(
      (chapter) =>
        `- [${site.titles[chapter]}](${address}/docs/${chapter}.md): ${GUIDES[guide].title}, ${groupOf(chapter)}\n`,
    )
    return `## ${GUIDES[guide].title}\n\n${GUIDES[guide].summary}\n\n${links.join('')}`
  })
  const reference = `## API reference

- [openapi-merchant.json](${address}/openapi-merchant.json): The operations and webhooks for merchants and partners, as OpenAPI 3.1.
- [openapi.json](${address}/openapi.json): The same with the operations of acquirers and health checks.
`
  return `# UPI payments

> ${SUMMARY}

${[...guides, ...(site.port === 'public' ? [reference] : [])].join('\n')}`
}

/** Returns the page of a chapter, such as /docs/merchant/refunds. */
export function chapterPage(chapter: string, { title, html: fragment, hasSamples }: Chapter, site: TitledSite): string {
  const guide = guideOf(chapter)
  const content = filledIn(fragment, site, (value) => html`${value}`.toString())
  // Places samples in the API guides beside the text. The commands in the operator manual are steps within the text, and
  // the table of error codes needs the whole width.
  const beside = hasSamples && ['merchant', 'partner', 'acquirer'].includes(guide) && !chapter.endsWith('/errors')
  return page(title, {
    site,
    path: chapter,
    body: html`${chapterNavigation(chapter, site)}
<main class="guide chapter${beside ? ' beside' : ''}" id="text">
<p class="crumbs"><span>${GUIDES[guide].title} › ${groupOf(chapter)}</span> <a href="${chapter.slice(guide.length + 1)}.md" type="text/markdown">Markdown</a></p>
${trustedHtml(content)}
${pager(chapter, site)}
</main>`,
  })
}

/**
 * Returns the navigation: the guide's chapters by task, and links to the other guides. On a phone, the navigation is
 * hidden until the reader opens `details`.
 */
function chapterNavigation(current: string, { guides, titles }: TitledSite): Html {
  const guide = guideOf(current)
  const link = (chapter: string, text: string | undefined) =>
    html`<li><a href="../${chapter}"${currentIf(chapter === current)}>${text}</a></li>\n`
  const groups = Object.entries<readonly string[]>(GUIDES[guide].groups).map(
    ([group, names]) => html`<h2>${group}</h2>
<ul>
${names.map((name) => link(`${guide}/${name}`, titles[`${guide}/${name}`]))}</ul>
`,
  )
  const others = guides.filter((name) => name !== guide)
  return html`<details class="menu"><summary>${GUIDES[guide].title}: all chapters</summary></details>
<nav class="chapters" aria-label="${GUIDES[guide].title}">
${groups}
${
  others.length === 0
    ? undefined
    : html`<h2>Other guides</h2>
<ul>
${others.map((name) => link(chaptersOf(name)[0] as string, GUIDES[name].title))}</ul>
`
}</nav>`
}

function pager(chapter: string, site: TitledSite): Html | undefined {
  const chapters = chaptersOf(guideOf(chapter))
  const at = chapters.indexOf(chapter)
  const link = (target: string | undefined, label: string, rel: string) =>
    target === undefined
      ? undefined
      : html`<a rel="${rel}" href="../${target}"><span>${label}</span> ${site.titles[target]}</a>\n`
  if (chapters.length < 2) return undefined
  return html`<nav class="pager" aria-label="Previous and next chapter">
${link(chapters[at - 1], 'Previous', 'prev')}${link(chapters[at + 1], 'Next', 'next')}</nav>`
}

/**
 * Returns the page /docs/reference, which OpenAPI Explorer renders. The page sends requests to the host from which it
 * was loaded.
 */
export function referencePage(site: TitledSite): string {
  return page('API reference', {
    site,
    path: 'reference',
    head: html`<script src="reference.js" type="module"></script>
<script src="openapi-explorer.min.js" type="module"></script>`,
    // Uses a section instead of `main`, because OpenAPI Explorer contains its own `main`.
    body: html`<section class="file" id="text" aria-label="API reference">
<h1>API reference</h1>
<p>For programs: <a href="../openapi.json">openapi.json</a>, or <a href="../openapi-merchant.json">openapi-merchant.json</a> for merchants
and partners</p>
<noscript><p>This page requires JavaScript. The first file has the same content.</p></noscript>
</section>
<openapi-explorer spec-url="../openapi.json" server-url=".." default-schema-tab="body" hide-server-selection></openapi-explorer>`,
  })
}

/** Returns the page /docs/thanks, to which the sandbox samples send the customer's browser after the payment. */
export function thanksPage(orderId: string | undefined, site: TitledSite): string {
  const command = `curl -u "$PUBLIC_KEY:$SECRET_KEY" ${site.publicUrl}/v1/payments/checkPaymentStatus \\
  -d mid=DEMO_MERCHANT -d order_id=${orderId ?? 'YOUR_ORDER_ID'}`
  return page('Thank you', {
    site,
    path: 'thanks',
    body: html`<main class="guide" id="text">
<h1>Your thank-you page</h1>
<p>This page stands in for the <code>redirect_url</code> of a merchant. A redirect proves nothing, because anyone can open this
address. Before you fulfil the order, check the payment status from your server:</p>
<div class="code"><div class="bar"><span>curl</span></div><pre tabindex="0"><code class="language-sh">${command}</code></pre></div>
<p>Fulfil the order only if <code>txnStatus</code> is <code>SUCCESS</code>. See the <a href="merchant/quickstart">quickstart</a>.</p>
</main>`,
  })
}

/** Returns the page of an unknown path below /docs, such as `merchant/refund`. */
export function notFoundPage(path: string, site: Site): string {
  const root = '../'.repeat(path.split('/').length)
  return page('Page not found', {
    site,
    path,
    body: html`<main class="guide" id="text">
<h1>Page not found</h1>
<p>The documentation has no page at this address. Search above, or open the <a href="${root}docs">list of all chapters</a>.</p>
</main>`,
  })
}

type Parts = { site: Site; path: string; head?: Html; body: Html }

/**
 * Returns a complete page. `path` is the page's path below /docs, such as `merchant/refunds`, and empty for /docs
 * itself.
 */
function page(title: string, { site, path, head, body }: Parts): string {
  const below = path === '' ? 'docs/' : '../'.repeat(path.split('/').length - 1)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title === 'UPI payments' ? title : `${title} · UPI payments`}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${below}guide.css">
<script src="${below}guide.js" type="module"></script>
${head}
</head>
<body>
<a class="skip" href="#text">Skip to the text</a>
${header(site, path, below)}
${body}
</body>
</html>
`.toString()
}

/** Returns the header of every page. The search field is hidden without JavaScript. */
function header(site: Site, path: string, below: string): Html {
  const docs = path === '' ? 'docs' : `${below}../docs`
  const link = (href: string, text: string, current?: Html) => html`<a href="${href}"${current}>${text}</a>\n`
  const to = (target: string, text: string) => link(`${below}${target}`, text, currentIf(target === path))
  const chapters = chaptersOfSite(site)
  const ifExists = (chapter: string, text: string) => (chapters.includes(chapter) ? to(chapter, text) : undefined)
  // A chapter is below `Guides`, so the link is marked as the current section, but not as the current page.
  const guides = link(
    docs,
    'Guides',
    path === '' ? currentIf(true) : path.includes('/') ? html` aria-current="true"` : undefined,
  )
  const links =
    site.port === 'public'
      ? [
          guides,
          to('reference', 'API reference'),
          ifExists('merchant/webhooks', 'Webhooks'),
          ifExists('merchant/errors', 'Errors'),
          ifExists('merchant/changelog', 'Changelog'),
        ]
      : [
          guides,
          ifExists('operator/troubleshooting', 'Troubleshooting'),
          chapters.some((chapter) => chapter.startsWith('alerts/')) ? link(`${docs}#alerts`, 'Alerts') : undefined,
          ifExists('operator/commands', 'Commands'),
          link(`${site.publicUrl}/docs`, 'Public docs'),
          link(path === '' ? './' : `${below}../`, 'Start page'),
        ]
  return html`<header class="site">
<a class="brand" href="${docs}">UPI payments</a>
<form class="search" role="search" hidden>
<input type="search" aria-label="Search the docs" placeholder="Search the docs  /" autocomplete="off" spellcheck="false">
<p class="status" role="status"></p>
<ul class="results" hidden></ul>
</form>
<nav aria-label="Documentation">
${links}</nav>
</header>`
}

const currentIf = (isCurrent: boolean) => (isCurrent ? html` aria-current="page"` : undefined)
