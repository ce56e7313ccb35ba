import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { PassThrough, Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import multipart from '@fastify/multipart'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { Failure, improperHost } from '../../errors.ts'
import { requireCredentials } from '../../gateway/tenants/authenticate.ts'
import { createMerchants } from '../../gateway/tenants/merchants.ts'
import type { Limits } from '../../limits.ts'
import { COLOURS } from '../../platform/colours.ts'
import { cached } from '../../platform/db/cached.ts'
import { hasState, isOutage, QUERY_CANCELED } from '../../platform/db/outage.ts'
import { createPool, type Database, forReader } from '../../platform/db/pool.ts'
import { REPEATED } from '../../platform/fields.ts'
import type { Html } from '../../platform/html.ts'
import { createOperatorApp } from '../../platform/http/http-app.ts'
import { registerInput } from '../../platform/http/input.ts'
import { createSerializer } from '../../platform/http/serialize.ts'
import { counted } from '../../platform/money.ts'
import { type Command, type Context, type OpenedFile, type ShowProgress, takesFile } from '../commands/command.ts'
import { listOfDisputes } from '../commands/disputes.ts'
import { CommandError, explain } from '../commands/errors.ts'
import { listExceptions } from '../commands/exceptions.ts'
import type { Field, Values } from '../commands/field.ts'
import { listOfRefunds } from '../commands/refunds.ts'
import { FiguresChanged } from '../commands/run.ts'
import { showToday } from '../commands/today.ts'
import { createOverview } from '../monitoring/overview.ts'
import { pageHeaders } from '../page.ts'
import { print } from '../terminal/print.ts'
import { createHostCheck } from './caller.ts'
import { createConfirmations } from './confirmations.ts'
import { type Page, pageOf } from './layout.ts'
import { createOperatorKeys, type OperatorKey } from './operator-keys.ts'
import { confirmationPage, errorPage, errorText, formPage, type Previewed, readPage, renderResult } from './pages.ts'
import { search } from './search.ts'
import { createUploads, SENT_TWICE } from './uploads.ts'
import { commandsOf, type OperatorView, type PageFields, pageName, type Run, toFields, valuesOf } from './view.ts'
import { createWork, endedPage, progressPage, type RequestedChange, type Work } from './work.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** What the operator may see and change; undefined before the operator's key is checked. */
    view: OperatorView | undefined
  }
}

const STYLE_SHEET = COLOURS + readFileSync(new URL('console.css', import.meta.url), 'utf8')
const HEADERS = pageHeaders({ hasForms: true })

/** The error of a request that the console rejects, with its HTTP status. */
const rejected = (statusCode: number, message: string) => Object.assign(new Error(message), { statusCode })

const unknownPage = () => rejected(404, 'This page does not exist. Search, or open a list.')

/** Whose command it is, and the connections with which it runs. */
type Runner = { person: string; db: Database }

type Dependencies = {
  /** All commands of `ops` by group. The console offers those with a title. */
  groups: Readonly<Record<string, readonly Command[]>>
  context: Pick<Context, 'config' | 'db' | 'sleep' | 'databaseTime' | 'note'>
  now: () => Date
  limits: Pick<Limits, 'connections' | 'body' | 'rates' | 'lookUps' | 'console' | 'today'>
}

/**
 * Creates the operator console, which serves commands of `ops` as pages. A GET runs a command that reads. A change is
 * two POSTs: the first shows the figures and a signed form, the second runs the command.
 */
export async function createConsole(dependencies: Dependencies): Promise<FastifyInstance> {
  const { groups, context, now, limits } = dependencies
  const { rows, confirmationMs, uploadBytes, requestMs } = limits.console
  const commands = Object.values(groups).flat()
  const offered = new Map(commands.filter(({ title }) => title).map((one) => [pageName(one), one]))
  const confirmations = createConfirmations(confirmationMs)
  const uploads = createUploads(confirmationMs)
  const work = createWork()
  // Results of changes, which the page after the change shows once to the same key.
  const results = new LRUCache<string, Html>({ ttl: confirmationMs, ttlAutopurge: true })
  const shownAt = (page: string, { operator }: OperatorView) => `${operator.publicKey} ${page}`
  const serializeByKey = createSerializer()
  const reads = poolOf(context, limits.console.reads)
  const longReads = poolOf(context, limits.console.longReads)
  const runAs = async ({ person, db }: Runner, command: Command, values: Values, run?: Run) => {
    const prepared = command.prepare(values)
    const file = run?.file && (await uploads.open(person, run.file.sha256))
    const auditId = run && !run.isPreview ? run.auditId : randomUUID()
    const given = { ...context, db, ...unattended(file, run?.onProgress), now: now(), person, auditId }
    const output = run?.isPreview ? prepared.preview(given) : prepared.run(given, run?.confirmed)
    return output.finally(() => file?.stream.destroy())
  }
  // Every open page of today reloads itself, so all operators share one run of the command.
  const runStartPage = cached(
    (...switches) =>
      runAs({ person: 'console', db: reads }, showToday, Object.fromEntries(switches.map((flag) => [flag, true]))),
    limits.today.page,
  )
  const app = createOperatorApp(limits, requestMs)
  app.addHook('onClose', () => Promise.all([reads.end(), longReads.end()]))
  await protect(app, dependencies, viewOf)
  await registerInput(app, limits.body)
  const { bytes: fieldSize, fields } = limits.body
  await app.register(multipart, { limits: { files: 1, fileSize: uploadBytes, fields, fieldSize } })

  app.get('/console.css', async (_request, reply) => reply.type('text/css; charset=utf-8').send(STYLE_SHEET))

  app.get('/', show)

  app.get('/search', inTurn(showResults))

  app.get('/work', inTurn(showWork))
  app.addHook('onClose', work.allDone)

  app.get('/:page', inTurn(show))
  app.post('/:page', inTurn(change))
  return app

  async function change(request: FastifyRequest, reply: FastifyReply) {
    const { command, view } = commandOf(request)
    const { publicKey, operator } = view.operator
    const isUpload = takesFile(command) && request.isMultipart()
    const form = isUpload ? await uploads.receive(request, operator) : { fields: (request.body ?? {}) as PageFields }
    if (REPEATED in form.fields) throw rejected(400, SENT_TWICE)
    const { change, mac } = form.fields
    if (typeof change === 'string' && typeof mac === 'string') {
      const pending = confirmations.verify({ change, mac }, publicKey, now())
      if (pending?.command !== command.name) throw rejected(403, INVALID_CONFIRMATION)
      const { nonce: id, values, file, back, confirmed } = pending
      return start({ id, command, values, file, back, confirmed }, view, reply)
    }
    if (!command.changes) throw unknownPage()
    const file = 'uploaded' in form ? form.uploaded : undefined
    const values = { ...valuesOf(command, form.fields), ...(file && { file: '-' }) }
    return start({ id: randomUUID(), command, values, file, back: form.fields.back }, view, reply)
  }

  /** Starts a change, or its preview. Of a change that may take minutes, the next page shows the progress. */
  async function start(requested: RequestedChange, view: OperatorView, reply: FastifyReply) {
    const { id, command, values, file, confirmed } = requested
    const { operator } = view.operator
    const last = work.find(operator)
    if (command.isLong && last && !last.end) throw rejected(409, STILL_RUNS)
    const started = work.start(operator, { ...requested, startedAt: now() }, (onProgress) =>
      view.run(command, values, {
        file,
        onProgress,
        ...(confirmed ? { auditId: id, confirmed } : { isPreview: true }),
      }),
    )
    if (command.isLong) return reply.redirect(`work?id=${id}`, 303)
    await started.done
    return finish(started, view, reply)
  }

  async function showWork(request: FastifyRequest, reply: FastifyReply) {
    const view = request.view as OperatorView
    const id = String((request.query as PageFields).id ?? '')
    const found = work.find(view.operator.operator)
    if (!found || (id !== '' && found.id !== id)) return send(reply, await endedPage(context.db, id, commands), view)
    // Most work ends before an operator could read its progress.
    await Promise.race([found.done, sleep(limits.console.workMs, undefined, { ref: false })])
    return found.end ? finish(found, view, reply) : send(reply, progressPage(found, now()), view, found.command)
  }

  /** Shows how a change, or its preview, has ended. */
  async function finish(
    { command, values, file, back, confirmed, end }: Work,
    view: OperatorView,
    reply: FastifyReply,
  ) {
    const previewed = { values, file, back }
    try {
      if (end === undefined) throw new Error('the work has not ended')
      if ('error' in end) throw end.error
      if (confirmed === undefined) {
        return send(reply, await confirm(command, { ...previewed, output: end.output }, view), view, command)
      }
      const page = String(back)
      results.set(shownAt(page, view), await renderResult(end.output, view, command))
      return reply.redirect(page, 303)
    } catch (error) {
      if (!(error instanceof FiguresChanged))
        return send(reply, await errorPage(error, command, { ...toFields(values), back }, view), view, command)
      const page = await confirm(command, { ...previewed, output: error.output }, view)
      return send(reply, { ...page, status: 409, result: errorText([error.message], view) }, view, command)
    }
  }

  /** Returns the page on which the operator confirms a change. */
  function confirm(command: Command, previewed: Previewed, view: OperatorView) {
    const { publicKey } = view.operator
    return confirmationPage(command, previewed, view, (pending) =>
      confirmations.sign({ ...pending, publicKey, shownAt: now().getTime(), nonce: randomUUID() }),
    )
  }

  async function showResults(request: FastifyRequest, reply: FastifyReply) {
    const text = String((request.query as PageFields).q ?? '').trim()
    const view = request.view as OperatorView
    const found = await search(text, view)
    return 'page' in found ? reply.redirect(found.page, 303) : send(reply, { title: 'Search', ...found, text }, view)
  }

  async function show(request: FastifyRequest, reply: FastifyReply) {
    const { command, view } = commandOf(request)
    const fields = request.query as PageFields
    if ((fields.csv === 'on' || fields.csv === 'plain') && command.csv) return sendCsv(command, fields, view, reply)
    const page = command.changes ? formPage : readPage
    const shown = await page(command, fields, view).catch((error) => errorPage(error, command, fields, view))
    const result = results.get(shownAt(view.here, view))
    results.delete(shownAt(view.here, view))
    return send(reply, { ...shown, result }, view, command)
  }

  /**
   * Serializes an operator's requests for one page, and for all pages that may read for minutes, so that slow pages leave
   * database connections to other operators. Drops a waiting request that the browser has cancelled.
   */
  function inTurn(handle: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>) {
    return (request: FastifyRequest, reply: FastifyReply) => {
      const { view, method, url, socket, params } = request
      const check = () => {
        if (socket.destroyed) throw rejected(499, 'The browser has cancelled the request.')
      }
      const isLong = offered.get((params as { page?: string }).page ?? '')?.isLong
      const key = `${view?.operator.operator} ${method} ${isLong ? '' : url.split('?')[0]}`
      return serializeByKey(key, { check, claim: check }, () => handle(request, reply))
    }
  }

  function viewOf(operator: OperatorKey, here: string): OperatorView {
    const isAllowed = ({ title, changes }: Command) =>
      title !== '' && operator.rights.includes(changes ? 'act' : 'read')
    const allowed = Object.entries(groups).map(([title, group]) => [title, group.filter(isAllowed)])
    const { db, leave } = forReader(reads)
    const long = forReader(longReads)
    const connectionsOf = ({ changes, isLong }: Command) => (changes ? context.db : isLong ? long.db : db)
    const run: OperatorView['run'] = (command, values, given) =>
      command === showToday
        ? runStartPage(...Object.keys(values))
        : runAs({ person: operator.operator, db: connectionsOf(command) }, command, values, given)
    const { namesOf } = createMerchants(db)
    const choicesOf = async ({ choices }: Field) => (await choices?.(db, now()))?.slice(0, rows) ?? []
    return {
      operator,
      groups: Object.fromEntries(allowed),
      here,
      open: new Map(),
      rows,
      now: now(),
      namesOf,
      choicesOf,
      run,
      leave() {
        leave()
        long.leave()
      },
    }
  }

  function commandOf({ params, view }: FastifyRequest): { command: Command; view: OperatorView } {
    const command = offered.get((params as { page?: string }).page ?? pageName(showToday))
    if (command === undefined) throw unknownPage()
    if (!view || !commandsOf(view).includes(command)) throw rejected(403, LACKS_ACT)
    return { command, view }
  }
}

function send(reply: FastifyReply, page: Page, view: OperatorView | undefined, command?: Command) {
  const { status = 200, refreshSeconds } = page
  if (refreshSeconds !== undefined) reply.header('refresh', refreshSeconds)
  return reply.code(status).send(pageOf(page, view, command))
}

/** Sends all rows of a command as CSV, and returns once the browser has received them or has left. */
async function sendCsv(command: Command, fields: PageFields, view: OperatorView, reply: FastifyReply) {
  const output = await view.run(command, valuesOf(command, fields))
  const stdout = new PassThrough()
  print(
    { stdin: Readable.from([]), stdout, stderr: new PassThrough().resume() },
    output,
    fields.csv === 'plain' ? 'csv' : 'excel',
  ).then(
    () => stdout.end(),
    (error) => stdout.destroy(error),
  )
  const disposition = `attachment; filename="${pageName(command)}.csv"`
  reply.type('text/csv; charset=utf-8').header('content-disposition', disposition).send(stdout)
  await finished(stdout).catch(() => undefined)
  return reply
}

/** Creates connections of the console's role. */
const poolOf = ({ config }: Dependencies['context'], limits: Partial<Limits['database']> & { size: number }) => {
  const { databaseMigrateUrl: url, preparedStatements } = config
  return createPool({ url, log: { warn: () => undefined }, preparedStatements, ...limits })
}

type ViewOf = (operator: OperatorKey, here: string) => OperatorView

/** Adds the checks of every request: its host, the operator's key, and that a POST comes from a page of the console. */
async function protect(app: FastifyInstance, { context, now, limits }: Dependencies, viewOf: ViewOf) {
  const { config, note } = context
  // Connections of its own, so that slow pages of some operators do not keep others from signing in.
  const db = poolOf(context, limits.console.signIn)
  app.addHook('onClose', () => db.end())
  const isHostAllowed = createHostCheck(config.consoleAllowedHosts)
  const findKey = cached((publicKey: string) => createOperatorKeys(db).find(publicKey, now()), limits.lookUps)
  const countOpen = cached(async () => {
    const { exceptions, refunds, disputes } = await createOverview(db).openCounts(now())
    return new Map([
      [listExceptions, sum(exceptions)],
      [listOfRefunds, sum(refunds)],
      [listOfDisputes, sum(disputes)],
    ])
  }, limits.console.counts)
  app.decorateRequest('publicKey', undefined)
  app.decorateRequest('view', undefined)
  app.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    const status = error instanceof CommandError ? 400 : isOutage(error) ? 503 : (error.statusCode ?? 500)
    if (status >= 500 && !request.socket.destroyed)
      note(`${request.method} ${request.routeOptions.url} failed: ${explain(error)}`)
    if (error instanceof Failure) reply.headers(error.headers)
    // A page of an error is not the file that a failed download would have been.
    reply.removeHeader('content-disposition')
    const text = request.view === undefined ? (UNSIGNED[status] ?? UNAVAILABLE) : explain(error)
    const body = errorText([text, ...(error instanceof CommandError ? error.details : [])], request.view)
    // A page that took too long would take as long again.
    const isRepeated = status === 503 && request.method === 'GET' && !hasState(error, QUERY_CANCELED)
    const refreshSeconds = isRepeated ? limits.today.refreshSeconds : undefined
    const page = { title: 'The request failed', status, refreshSeconds, body }
    return send(reply.headers(HEADERS), page, request.view)
  })
  app.setNotFoundHandler(() => {
    throw unknownPage()
  })
  app.addHook('onRequest', async ({ headers, socket }, reply) => {
    reply.headers(HEADERS)
    if (!isHostAllowed(headers, socket.remoteAddress)) throw rejected(403, UNSIGNED[403] as string)
  })
  await requireCredentials<OperatorKey>(app, {
    rates: limits.rates,
    findKey: (publicKey) => findKey(publicKey),
    accept(key, request) {
      request.view = viewOf(key, request.url.slice(1) || pageName(showToday))
    },
  })
  app.addHook('onRequest', async ({ method, headers, view }, reply) => {
    if (view !== undefined) reply.raw.once('close', view.leave)
    if (view !== undefined) view.open = await countOpen().catch(() => new Map())
    if (method === 'POST' && !isSameOrigin(headers)) throw rejected(403, OTHER_ORIGIN)
  })
}

const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((all, count) => all + count, 0)

/**
 * Whether a page of the console sent the form. Browsers send the stored credentials of the Basic scheme with forms of
 * every view, and set these two headers themselves. The scheme is not compared, because a proxy may end TLS.
 */
function isSameOrigin({ origin, host = '', 'sec-fetch-site': site }: FastifyRequest['headers']): boolean {
  return site === 'same-origin' || origin?.replace(/^https?:\/\//, '') === host.toLowerCase()
}

/** What a command gets that runs without an operator at a terminal. `file` is the uploaded file. */
const unattended = (file: OpenedFile | undefined, onProgress: (text: string) => void = () => undefined) => ({
  fileName: file?.name,
  open: async () => file ?? { stream: Readable.from([]), name: '' },
  ...{ note: onProgress, noteInText: onProgress, isTerminal: false, ask: async () => undefined },
  withProgress: <T>(run: (progress: ShowProgress) => Promise<T>) =>
    run((unit, many) => (count) => onProgress(counted(count, unit, many))),
  stopSignal: () => new AbortController().signal,
})

const STILL_RUNS = 'Your last import or close still runs. Open /work to see its progress.'
const LACKS_ACT = 'Your key does not have the right act. Ask for a key with --rights read,act.'
const OTHER_ORIGIN =
  'The form was sent by another website, so nothing was changed. Open the page here and send it again.'
const INVALID_CONFIRMATION =
  'The confirmation is invalid or more than 15 minutes old, so nothing was changed. Open the form again.'
const UNAVAILABLE = 'The console is unavailable. Try again in 30 seconds.'
/** Texts for callers who have not signed in. */
const UNSIGNED: Readonly<Record<number, string>> = {
  400: improperHost().message,
  401: 'Sign in with the public key as user name and the secret key as password. ops keys create --operator creates keys.',
  403: 'The console accepts no requests under this host name. Use localhost on its own machine, or set CONSOLE_ALLOWED_HOSTS.',
  429: 'Too many invalid credentials. Check both keys, and try again in a minute.',
}
