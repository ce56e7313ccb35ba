import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config.ts'
import { type Html, html } from '../../platform/html.ts'
import { fail } from '../../platform/http/envelope.ts'
import { prefersHtml } from '../../platform/http/request-headers.ts'
import { createCallerCheck } from '../console/caller.ts'
import { htmlPage, pageHeaders } from '../page.ts'

const HEADERS = pageHeaders({ hasForms: false })

/** Rejects every request that does not come from the operator, including requests to unknown paths. */
export function operatorsOnly(app: FastifyInstance, readers: Config['opsReaders']) {
  const isOperator = createCallerCheck(readers)
  app.addHook('onRequest', async ({ headers, socket }, reply) => {
    if (isOperator(headers, socket.remoteAddress)) return
    const isClosed = readers.password === undefined
    const [statusCode, title, message] = isClosed
      ? [403, 'Access denied', NOT_FROM_HERE]
      : [401, 'Password required', 'Sign in with OPS_PASSWORD and any user name.']
    if (!isClosed) reply.header('www-authenticate', 'Basic realm="operator", charset="UTF-8"')
    reply.code(statusCode)
    if (!prefersHtml(headers.accept)) return reply.send(fail({ statusCode, message }))
    return reply.headers(HEADERS).send(page(title, html`<p>${message}</p>`))
  })
}

const NOT_FROM_HERE =
  'This port shows data of every merchant. Without OPS_PASSWORD it accepts requests only from its own machine, as localhost, ' +
  '127.0.0.1 or [::1], and under the hosts in OPS_ALLOWED_HOSTS, never through a proxy. From another machine, open an SSH ' +
  'tunnel such as ssh -L 3001:127.0.0.1:3001, or set OPS_PASSWORD or OPS_ALLOWED_HOSTS. Behind a proxy, set OPS_PASSWORD.'

/** Serves `/` of the operator's port: links to what the port and the console serve. */
export function operatorIndexRoute(app: FastifyInstance, { publicUrl }: Pick<Config, 'publicUrl'>) {
  const index = page(
    'Operator',
    html`<ul>
<li><a href="docs">Operator manual</a></li>
<li><a href="metrics">Metrics</a> for Prometheus</li>
<li><a href="${publicUrl}/docs">API guides</a> for merchants, partners and acquirers (public)</li>
</ul>
<h2>Operator console</h2>
<p>The console shows today’s orders and what needs attention, and finds and refunds payments. <a href="docs/operator/console">Start it</a>
with <code>ops console</code>, and open <code>http://localhost:3002</code>, or the port in <code>CONSOLE_PORT</code>.</p>`,
  )
  app.get('/', async (_request, reply) => reply.headers(HEADERS).send(index))
}

const page = (title: string, content: Html): string => {
  const body = html`<header class="site"><nav aria-label="Pages"><a class="brand" href=".">UPI payments</a>
<a href="docs">Manual</a></nav></header>
<main class="guide" id="text">
<h1>${title}</h1>
${content}
</main>
`
  return htmlPage({ title, styles: 'docs/guide.css', body })
}
