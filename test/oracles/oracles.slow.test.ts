import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AcquirerError } from '../../src/errors.ts'
import { UnreadableStatus } from '../../src/gateway/acquirers/json-request.ts'
import type { RefundUpdate } from '../../src/gateway/refunds/refund.ts'
import { LIMITS } from '../../src/limits.ts'
import { createOutboundClient, type HttpClient } from '../../src/platform/outbound/http-client.ts'
import { stopAtEnd } from '../support/at-end.ts'
import type { BankRequest } from '../support/fake-bank.ts'
import { type Json, type Path, pathsIn } from '../support/json-changes.ts'
import { allow } from '../support/webhooks.ts'
import { cashfree } from './cashfree.ts'
import { allowOnlyLoopback, installClients } from './clients.ts'
import { phonepe } from './phonepe.ts'
import { razorpay } from './razorpay.ts'
import { type ClientScene, type Scene, type Step, stepsOf } from './scene.ts'
import { setu } from './setu.ts'
import { departures, differences, type Fields, isObject, nameOf, parentOf, valueAt } from './shapes.ts'

const README = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')

/** Expects exactly the differences that README.md lists for an acquirer. */
function expectListed(acquirer: string, found: string[]): void {
  const rows = README.split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
  const listed = rows
    .filter(([, first, , , reason]) => first === acquirer && reason)
    .flatMap(([, , calls = '', parts = '']) =>
      calls.split(', ').flatMap((call) => [...parts.matchAll(/`([^`]+)`/g)].map(([, part]) => `${call} ${part}`)),
    )
  expect([...new Set(found)].sort()).toEqual(listed.sort())
}

const folder = await installClients()
const require = createRequire(`${folder}/any.js`)
const CLIENTS: [string, ClientScene][] = folder
  ? [
      ['phonepe', phonepe(require, folder) as unknown as ClientScene],
      ['cashfree', cashfree(require, folder) as unknown as ClientScene],
      ['razorpay', razorpay(require, folder) as unknown as ClientScene],
    ]
  : []
const SCENES: [string, Scene][] = [...CLIENTS, ['setu', setu as unknown as Scene]]

let loopback: ReturnType<typeof allowOnlyLoopback>
beforeAll(() => {
  loopback = allowOnlyLoopback()
})
afterAll(() => loopback.restore())

async function start({ start }: Scene) {
  const bank = await start()
  stopAtEnd(() => bank.goAway())
  return bank
}

type Recorded = { call: string; step: Step; status: number; body: Json }

/** Plays an order with the connector. Returns its last request and response of each method and URL. */
async function playConnector(scene: Scene) {
  const bank = await start(scene)
  const recorded = new Map<string, Recorded>()
  const steps = stepsOf(scene, bank)
  let step = steps[0] as Step
  const limits = { ...LIMITS.outbound, acquirerMs: 30_000 }
  const http = createOutboundClient({ allowedNetworks: allow(), limits, now: () => new Date() })
  const client = scene.connector(bank, {
    async request(sent) {
      const response = await http.request(sent)
      if (!('body' in response)) throw new Error(`no response from ${sent.url}`)
      const call = bank.requests.at(-1)?.call ?? ''
      const body = JSON.parse(String(response.body))
      recorded.set(`${sent.method} ${sent.url}`, { call, step, status: response.status, body })
      return response
    },
  } as HttpClient)
  for (step of steps) await step[1](client)
  return { bank, recorded, connect: (through: HttpClient) => scene.connector(bank, through) }
}

/** Headers of the connection, and of the HTTP client itself. */
const OF_CONNECTION = ['host', 'connection', 'user-agent', 'accept', 'accept-encoding', 'content-length']

/** The parts of a request that must be equal. Two fakes assign different tokens and identifiers. */
function partsOf(request: BankRequest<string>) {
  const text = JSON.stringify(request).replace(/\b(order|pay)_[0-9a-f]{14}\b/g, '$1_id')
  const { method, path, headers, body }: BankRequest<string> = JSON.parse(text)
  const { pathname, searchParams } = new URL(path, 'http://bank')
  const query = Object.fromEntries([...searchParams.keys()].map((name) => [name, searchParams.getAll(name).join()]))
  const header = Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_CONNECTION.includes(name)))
  const scheme = headers.authorization?.replace(/ .*/, '')
  return { method, path: pathname, query, header: { ...header, authorization: scheme }, body }
}

const lastOf = ({ requests }: { requests: BankRequest<string>[] }, call: string) =>
  requests.findLast((request) => request.call === call) as BankRequest<string>

/** The fields of requests and successful responses that the acquirer's own description does not have, or requires. */
function shapeDifferences({ shapes }: Scene, { bank, recorded }: Awaited<ReturnType<typeof playConnector>>): string[] {
  return [...recorded.values()].flatMap(({ call, status, body }) => {
    const { line, sent, returned } = shapes[call] ?? {}
    const { method, path, body: request } = lastOf(bank, call)
    const isLine = !line || new RegExp(`^${line.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(`${method} ${path}`)
    const inRequest = sent ? departures(sent, request as Json) : []
    const inResponse = returned && status < 300 ? departures(returned, body) : []
    return [
      ...(isLine ? [] : [`${call} line`]),
      ...inRequest.map((name) => `${call} body.${name}`),
      ...inResponse.map((name) => `${call} response.${name}`),
    ]
  })
}

/** Plays an order with the client that the acquirer publishes, and returns each difference from the connector. */
async function playClient(scene: ClientScene, connector: Awaited<ReturnType<typeof playConnector>>) {
  const bank = await start(scene)
  const found: string[] = []
  const calls = scene.calls(bank, (call) => lastOf(connector.bank, call).body as never)
  const own = new Set(connector.bank.requests.map(({ call }) => call))
  expect(Object.keys(calls).sort()).toEqual([...own].filter((call) => call !== 'logIn').sort())
  for (const [call, send] of Object.entries(calls)) {
    if (['order', 'payments'].includes(call))
      await stepsOf(scene, bank).find(([name]) => name === 'customer')?.[1](null as never)
    const [read, expected] = await send()
    expect(read, call).toMatchObject(expected)
  }
  for (const call of own) {
    const [ours, theirs] = [connector.bank, bank].map((one) => partsOf(lastOf(one, call)))
    found.push(...differences(ours, theirs).map((name) => `${call} ${name}`))
  }
  for (const { body, signature, fields } of scene.notifications(bank)) {
    expect(() => scene.read(body, signature.replace(/.$/, '!'))).toThrow()
    expect(scene.read(body, signature)).toMatchObject(JSON.parse(body))
    found.push(...departures(fields, JSON.parse(body)).map((name) => `notification ${name}`))
  }
  return found
}

type Change = { path: Path; to: Json | undefined; isKnown?: boolean }

/**
 * Each value absent, null, empty and, of a state, unknown; each other value of an enum; and each field of `fields` that
 * `body` does not have.
 */
function changesOf(body: Json, fields: Fields): Change[] {
  const paths = pathsIn(body)
  const names = paths.map(nameOf)
  const present = paths.flatMap((path): Change[] => {
    const value = valueAt(body, path)
    const empty = Array.isArray(value) ? [] : isObject(value) ? {} : ''
    const known = fields.get(nameOf(path))?.values?.filter((one) => one !== OF_GENERATOR) ?? []
    return [
      ...[undefined, null, empty, ...unknown(nameOf(path))].map((to) => ({ path, to })),
      ...known.map((to) => ({ path, to, isKnown: true })),
    ]
  })
  const absent = [...fields.keys()].filter((name) => name !== '' && !names.includes(name))
  const holdersOf = (name: string) =>
    [[], ...paths].filter((path) => {
      const holder = valueAt(body, path)
      return nameOf(path) === parentOf(name) && isObject(holder) && !Array.isArray(holder)
    })
  const added = absent.flatMap((name) =>
    holdersOf(name).flatMap((path) =>
      [null, '', ...unknown(name)].map((to) => ({ path: [...path, name.split('.').at(-1) ?? ''], to })),
    ),
  )
  return [...present, ...added]

  function unknown(name: string): string[] {
    return fields.get(name)?.values || /(state|status|type|mode)$/i.test(name) ? ['SOMETHING_NEW'] : []
  }
}

/** Stands for all unknown values in the enums of Cashfree's client. */
const OF_GENERATOR = '11184809'

function changed(body: Json, { path, to }: Change): Json {
  const copy = structuredClone(body)
  const holder = valueAt(copy, path.slice(0, -1)) as { [name: string]: Json }
  const name = path.at(-1) as string
  if (to === undefined) delete holder[name]
  else holder[name] = to
  return copy
}

/**
 * A paid order is reported as paid or as unreadable, and a refund is not reported as failed. The service stores an
 * exception for an unreadable order, and for a refund that has no final status. No known value is unreadable.
 */
function isHandled(step: string, result: unknown, { isKnown }: Change): boolean {
  const isStatus = step === 'status' || step.startsWith('refund')
  if (isKnown && isStatus) return !(result instanceof Error) && (result as RefundUpdate).unknownStatus === undefined
  if (step === 'status' && Array.isArray(result)) return result.some(({ status }) => status === 'SUCCESS')
  if (result instanceof Error) return result instanceof (step === 'status' ? UnreadableStatus : AcquirerError)
  return !isStatus || (result as RefundUpdate | undefined)?.status !== 'FAIL'
}

describe.skipIf(CLIENTS.length === 0).each(CLIENTS)('the client that %s publishes', (name, scene) => {
  it('sends the requests of the connector and reads the responses of the fake, except for the listed differences', async () => {
    const connector = await playConnector(scene)
    const found = await playClient(scene, connector)
    expectListed(name, [...found, ...shapeDifferences(scene, connector)])
  })
})

describe.each(SCENES)('the connector to %s', (_name, scene) => {
  it('handles every response that the acquirer’s own description allows', async () => {
    const { recorded, connect } = await playConnector(scene)
    const requestOf = ({ method, url }: { method?: string; url: string }) => `${method} ${url}`
    const unhandled: string[] = []
    let count = 0
    for (const [request, { call, step, status, body }] of recorded) {
      if (status > 299) continue
      for (const change of changesOf(body, scene.shapes[call]?.returned ?? new Map())) {
        const other = changed(body, change)
        const client = connect({
          async request(sent) {
            const known = recorded.get(requestOf(sent))
            const returned = requestOf(sent) === request ? { status, body: other } : known
            if (returned === undefined) return { failure: 'connection failed', text: 'not recorded' }
            return { status: returned.status, body: Buffer.from(JSON.stringify(returned.body)) }
          },
        } as HttpClient)
        const result = await step[1](client).catch((error: unknown) => error)
        count++
        if (!isHandled(step[0], result, change)) unhandled.push(`${call} ${JSON.stringify(change)}: ${result}`)
      }
    }
    expect(unhandled).toEqual([])
    expect(count).toBeGreaterThan(200)
  })
})

it('Setu’s document describes each request of the connector and each response of the fake', async () => {
  const scene = setu as unknown as Scene
  expectListed('setu', shapeDifferences(scene, await playConnector(scene)))
})

it('the clients call nothing but 127.0.0.1', () => {
  expect(loopback.rejected).toEqual([])
  expect(() => connect(80, '127.0.0.2')).toThrow('not allowed')
  expect(loopback.rejected).toEqual(['127.0.0.2'])
})
