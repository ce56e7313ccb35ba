import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { headersTooLarge } from '../../src/errors.ts'
import { LIMITS } from '../../src/limits.ts'
import { FAILING_DAYS } from '../../src/webhooks/schedule.ts'

const GUIDE = readFileSync(new URL('../../src/docs/guides/operator.md', import.meta.url), 'utf8')
const DEFAULTS = readConfig({ DATABASE_URL: 'postgres://localhost/any' })

const DAY_SECONDS = 24 * 60 * 60
const HOUR_MS = 60 * 60 * 1000

const count = (number: number) => number.toLocaleString('en-US')
const seconds = (ms: number) => `${ms / 1000} s`
const kib = (bytes: number) => `${bytes / 1024} KiB`
const mib = (bytes: number) => `${bytes / 1024 ** 2} MiB`

const { connections, body, answer, patience, lookUps, database, inserts, pools, lateness } = LIMITS
const { openExceptions, operatorPage } = LIMITS
const { lists, pages, rates, reports, unreadable, shutdown, webhooks, outside } = LIMITS

/** The table as it follows from the limits. The last rows are limits of commands and of PostgreSQL, which stand elsewhere. */
const ROWS = [
  `request: all of it must arrive / idle connection kept | ${seconds(connections.requestMs)} / ${seconds(connections.keepAliveMs)}`,
  `headers: bytes / number | ${kib(connections.headersBytes)} / ${connections.headers}`,
  `connections / the reader of one takes nothing | ${count(connections.connections)} / ${connections.stalledMs / 1000} to ${seconds(2 * connections.stalledMs)}, then it is closed`,
  `body: bytes / fields | ${kib(body.bytes)} / ${body.fields}`,
  `answer, once the body has arrived | ${seconds(answer.ms)}, then 503`,
  `checkPaymentStatus while the database is away: time / calls that wait / asks again | ${seconds(patience.ms)}, then 503 / ${count(patience.waiting)} / every ${patience.pauseMs} ms`,
  `a key or a link is remembered | ${seconds(lookUps.rememberedMs)}`,
  `database: wait for a connection / query / idle connection kept | ${seconds(database.connectTimeoutMs)} / ${seconds(database.queryTimeoutMs)} / ${seconds(database.idleTimeoutMs)}`,
  `an intent waits to be stored | ${seconds(inserts.waitingMs)}, then 503`,
  `connections: creates / keys / requests / reports / webhooks and questions / pages / lists / operator | ${pools.creates} / ${pools.keys} / ${DEFAULTS.databasePoolSize} / ${pools.reports} / ${pools.due} / ${pools.pages} / ${pools.lists} / ${pools.operator}`,
  `event-loop lag: pay pages and QR codes / the operations | ${lateness.pagesMs} ms / ${lateness.operationsMs} ms, then 503`,
  `longest list that is answered in one piece / longest time of a list | ${count(lists.shortRows)} rows / ${lists.longestMs / HOUR_MS} h, then it is cut off`,
  `long lists at once: of a partner / of an instance | 1, then 429 / ${lists.longAtOnce}, then 503`,
  `slowest reader of a long list | ${kib(lists.slowestReaderBytesPerSecond)}/s on average over ${seconds(lists.readerWindowMs)}, then cut off`,
  `open pay pages with events: all / of one order | ${count(pages.open)} / ${pages.openOfOrder}`,
  `QR images remembered | ${count(pages.qrImages)}, ${mib(pages.qrImagesBytes)}`,
  `requests of a key / wrong secrets of a key and address | ${count(DEFAULTS.rateLimitPerSecond)} a second / ${rates.wrongSecrets} a minute`,
  `unknown public keys of an address | ${rates.unknownKeys} a minute, then 429`,
  `failed attempts of one order that are stored | ${reports.attemptsOfOrder}, then they are only counted`,
  `unreadable notifications kept: number / of each | ${count(unreadable.kept)} / ${kib(unreadable.bytes)}`,
  `webhook: time for an answer / read of its headers / of its body / interim answers | ${seconds(outside.merchantMs)} / ${kib(outside.headersBytes)} / ${kib(outside.merchantBytes)} / ${outside.interimAnswers}`,
  `webhook: first try of a name server / until the next address of a name is tried | ${seconds(outside.resolveTryMs)} / ${seconds(outside.connectAttemptMs)}`,
  `webhook: longest \`Retry-After\` that counts / failing until it is switched off | ${outside.retryAfterSeconds / DAY_SECONDS} day / ${FAILING_DAYS} days`,
  `webhooks of a merchant that are on | ${webhooks.ofMerchant}`,
  `webhooks at once: to an address / of an instance / addresses of one look | ${webhooks.callsOfEndpoint} / ${count(webhooks.callsAtOnce)} / ${count(webhooks.lookedAt)}`,
  `webhooks that are due are looked for / come again when their instance was killed / wait at shutdown | every ${seconds(webhooks.lookIntervalMs)} / after ${seconds(webhooks.visibilityMs)} / ${seconds(webhooks.stopMs)}`,
  `operator's page: wait for what is not counted | ${seconds(operatorPage.waitMs)}`,
  `operator's page: counts of recent days are used for / of days on which every order has ended | ${operatorPage.refreshSeconds / 2} s / ${operatorPage.olderCountsMs / HOUR_MS} h`,
  `exceptions that are open are counted for \`/metrics\` | every ${seconds(openExceptions.rememberedMs)} at most`,
  `answer of a webhook, as the operator sees it | ${outside.shownCharacters} characters`,
  `shutdown: drain / what is under way | ${DEFAULTS.shutdownDrainSeconds} s / ${seconds(shutdown.closeMs)}`,
].map((row) => `| ${row} |`)

const NOT_OF_THE_SERVICE = /^\| (migration|import|reconcile|PostgreSQL)\b/

describe('the limits', () => {
  it('are what the operator’s guide says', () => {
    const [, section = ''] = GUIDE.split('\n## Limits\n')
    const [table = ''] = section.trimStart().split('\n\n')
    const [, , ...rows] = table.split('\n')
    expect(rows.filter((row) => !NOT_OF_THE_SERVICE.test(row))).toEqual(ROWS)
  })

  it('are what refusals tell callers', () => {
    expect(headersTooLarge().message).toContain(`at most ${kib(connections.headersBytes)} `)
  })

  it('add up to 503 within 2 s while the database is away', () => {
    expect(database.connectTimeoutMs + answer.ms).toBeLessThan(2_000)
    // The caller of an intent that still waits to be stored has not been answered yet.
    expect(inserts.waitingMs).toBeLessThan(answer.ms)
  })

  it('let nobody read on for 5 s after the key was revoked or the link was cut', () => {
    const lookUpMs = database.connectTimeoutMs + database.queryTimeoutMs
    expect(lookUps.rememberedMs + lists.readerCheckIntervalMs + lookUpMs).toBeLessThan(5_000)
  })

  it('leave a connection to others than open pay pages, and refuse pay pages before payments', () => {
    expect(pages.open).toBeLessThan(connections.connections)
    expect(lateness.pagesMs).toBeLessThan(lateness.operationsMs)
  })

  it('end the process before container platforms kill it, after 30 s', () => {
    expect(DEFAULTS.shutdownDrainSeconds * 1000 + shutdown.closeMs).toBeLessThan(30_000)
  })
})
