import { type Html, html } from '../platform/html.ts'

/**
 * Returns the response headers of a page for operators. They allow styles from the same origin and `data:` images, but
 * no scripts. With forms, the page sends its address to its own origin, because browsers otherwise send `Origin: null`.
 */
export const pageHeaders = ({ hasForms }: { hasForms: boolean }) => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'self'; img-src data:; " +
    `form-action ${hasForms ? "'self'" : "'none'"}; base-uri 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': hasForms ? 'same-origin' : 'no-referrer',
  'cache-control': 'no-store',
})

/** Returns a page for operators. Its links are relative, because a proxy may serve it under a path. */
export const htmlPage = ({ title, styles, body }: { title: string; styles: string; body: Html }): string =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · UPI payments</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${styles}">
</head>
<body>
${body}</body>
</html>
`.toString()
