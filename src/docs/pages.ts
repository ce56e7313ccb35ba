import { type Html, html, trustedHtml } from '../platform/html.ts'

/** The pages below /docs. Links between them are relative, because a proxy may serve the service under a path. */

export type DocsOptions = {
  publicUrl: string
  /** Whether this service takes notifications of the acquirer `direct`: then the acquirer's guide is public. */
  takesNotifications: boolean
  /** Whether payments are simulated: the redirect_urls of samples then lead to a page of this service. */
  sandbox: boolean
}

/** Public guides by the last segment of their path. The operator's guides are not public. */
const GUIDES = {
  merchant: { title: 'For the merchant’s developer', does: 'Take payments: from the first one to every refusal.' },
  shops: {
    title: 'Shops that exist already',
    does: 'WooCommerce, WHMCS, PHP and Android: what is set, what works, and their own faults.',
  },
  partner: {
    title: 'For the partner’s developer',
    does: 'Read what was paid out to a merchant, and reconcile a month.',
  },
  acquirer: { title: 'For the acquirer’s developer', does: 'Tell the service of payments, signed.' },
} as const

type GuideName = keyof typeof GUIDES

export function guideNames({ takesNotifications }: DocsOptions): GuideName[] {
  const names = Object.keys(GUIDES) as GuideName[]
  return names.filter((name) => takesNotifications || name !== 'acquirer')
}

/** The page /docs, which lists the guides with their readers. */
export function indexPage(options: DocsOptions): string {
  const card = (href: string, title: string, text: string) =>
    html`<li><a href="docs/${href}"><strong>${title}</strong></a><br>${text}</li>`
  const cards = guideNames(options).map((name) => card(name, GUIDES[name].title, GUIDES[name].does))
  return page('UPI payments', {
    at: 'docs',
    options,
    body: html`<main class="guide" id="text">
<h1>UPI payments</h1>
<p>This service takes UPI payments in India. Choose the guide that is written for you:</p>
<ul class="cards">
${cards}
${card('reference', 'Reference', 'Every operation with its fields and answers; send requests from the browser.')}
<li><a href="openapi.json"><strong>openapi.json</strong></a><br>The reference for programs: Postman, Insomnia, code generators.</li>
</ul>
<p>Whoever runs the service finds the operator’s guide at <code>/docs</code> of the port for operators
(<code>OPS_PORT</code>, 3001 unless it was set), which is not public.</p>
</main>`,
  })
}

/** The file /llms.txt, which lists the documents for language models in the format of llmstxt.org. */
export function llmsText(options: DocsOptions): string {
  const { publicUrl } = options
  const guides = guideNames(options).map(
    (name) => `- [${GUIDES[name].title}](${publicUrl}/docs/${name}.md): ${GUIDES[name].does}\n`,
  )
  return `# UPI payments

> Takes UPI payments in India: a merchant's server asks for a payment, and asks what became of it before it ships.

## Documents

${guides.join('')}- [openapi.json](${publicUrl}/openapi.json): Every operation with its fields and answers, as OpenAPI 3.1.
`
}

/** The page of a guide, such as /docs/merchant. `fragment` is the HTML that renderGuide returns. */
export function guidePage(name: GuideName, fragment: string, options: DocsOptions): string {
  return page(GUIDES[name].title, { at: name, options, body: filledInHtml(fragment, options) })
}

/** Titles of the guides on the operator's port, where /docs is the operator's guide. */
export const OPERATOR_GUIDES = {
  operator: 'For the operator',
  setu: 'Setu',
  cashfree: 'Cashfree',
  phonepe: 'PhonePe',
} as const

export function operatorPage(name: keyof typeof OPERATOR_GUIDES, fragment: string, options: Addresses): string {
  return page(OPERATOR_GUIDES[name], { at: name === 'operator' ? 'docs' : name, body: filledInHtml(fragment, options) })
}

/** The page /docs/reference, made by OpenAPI Explorer. Its requests go to the host from which the page was loaded. */
export function referencePage(options: DocsOptions): string {
  return page('Reference', {
    at: 'reference',
    options,
    head: html`<script src="reference.js" type="module"></script>
<script src="openapi-explorer.min.js" type="module"></script>`,
    // A section instead of `main`, because OpenAPI Explorer contains its own `main`.
    body: html`<section class="file" id="text" aria-label="Reference">
<h1>Reference</h1>
<p>The same for programs: <a href="../openapi.json">openapi.json</a></p>
<noscript><p>This page needs JavaScript; that file does not.</p></noscript>
</section>
<openapi-explorer spec-url="../openapi.json" server-url=".." default-schema-tab="body" hide-server-selection></openapi-explorer>`,
  })
}

/** The page /docs/thanks, to which a sandbox's samples send the customer's browser after the payment. */
export function thanksPage(orderId: string | undefined, options: DocsOptions): string {
  const command = `curl -u "$PUBLIC_KEY:$SECRET_KEY" ${options.publicUrl}/v1/payments/checkPaymentStatus \\
  -d mid=DEMO_MERCHANT -d order_id=${orderId ?? 'YOUR_ORDER_ID'}`
  return page('Thank you', {
    at: 'thanks',
    options,
    body: html`<main class="guide" id="text">
<h1>Here your shop says thank you</h1>
<p>This page stands in for the <code>redirect_url</code> of a shop. That a browser has arrived here proves nothing: anybody can
open an address. Before it ships, the shop’s server asks what became of the order:</p>
<div class="code"><pre tabindex="0"><code>${command}</code></pre></div>
<p>It ships when <code>txnStatus</code> is <code>SUCCESS</code>. More in the <a href="merchant">merchant’s guide</a>.</p>
</main>`,
  })
}

type Parts = {
  /** The last segment of the page's path. */
  at: 'docs' | 'reference' | 'thanks' | GuideName | keyof typeof OPERATOR_GUIDES
  /** Options of a public page, for its links to the other public pages; absent on the operator's port. */
  options?: DocsOptions
  head?: Html
  body: Html
}

function page(title: string, { at, options, head, body }: Parts): string {
  const below = at === 'docs' ? 'docs/' : ''
  const link = (name: string, text: string) => html`<a href="${below}${name}"${currentIf(name === at)}>${text}</a>\n`
  const names = options ? guideNames(options) : []
  const links = [
    html`<a class="brand" href="${below === '' ? '../docs' : 'docs'}"${currentIf(at === 'docs')}>UPI payments</a>\n`,
    ...names.map((name) => link(name, `${name[0]?.toUpperCase()}${name.slice(1)}`)),
    ...(options ? [link('reference', 'Reference')] : []),
  ]
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
<header class="site"><nav aria-label="Documentation">${links}</nav></header>
${body}
</body>
</html>
`.toString()
}

const currentIf = (isCurrent: boolean) => (isCurrent ? html` aria-current="page"` : undefined)

type Addresses = Pick<DocsOptions, 'publicUrl'> & Partial<DocsOptions>

/** Replaces {PUBLIC_URL} and {SHOP_URL} in a guide by real addresses, so that its samples work when pasted. */
export function filledIn(text: string, { publicUrl, sandbox }: Addresses, spell = (value: string) => value): string {
  const values: Record<string, string> = {
    PUBLIC_URL: publicUrl,
    SHOP_URL: sandbox ? `${publicUrl}/docs/thanks` : 'https://shop.example/thanks',
  }
  // Braces may be percent-encoded, as they are in the href of a link.
  return text.replace(/(?:\{|%7B)([A-Z]+_URL)(?:\}|%7D)/g, (whole, name) => spell(values[name] ?? whole))
}

const filledInHtml = (fragment: string, options: Addresses) =>
  trustedHtml(filledIn(fragment, options, (value) => html`${value}`.toString()))
