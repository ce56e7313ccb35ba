import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createdOrderId, createRequest } from '../support/requests.ts'
import { longList } from '../support/settlements.ts'
import { BYSTANDER_ADDRESS, bystanderClient } from './bystander.ts'
import type { Scene } from './scene.ts'

const LIST_INTERVAL_MS = 1_500
const PAGE_INTERVAL_MS = 1_000
const PAGE_TIMEOUT_MS = 5_000

/** Another partner requests its long list repeatedly. Returns the broken promises. */
export async function requestLists({ bystander }: Scene, url: string, seconds: number): Promise<string[]> {
  const client = bystanderClient()
  const rejected: string[] = []
  let requested = 0
  await every(LIST_INTERVAL_MS, seconds, async () => {
    requested++
    const response = await client.send(url, longList(bystander.partner, bystander.merchant.mid))
    if (response.status !== 200) rejected.push(String(response.status ?? response.fault))
  })
  client.close()
  return rejected.length === 0
    ? []
    : [`another partner gets its list: ${rejected.length} of ${requested} failed with ${unique(rejected)}`]
}

/** Another customer opens a pay page repeatedly. Returns the broken promises about its events. */
export async function openPages({ bystander }: Scene, url: string, seconds: number): Promise<string[]> {
  const client = bystanderClient()
  const created = await client.send(url, createRequest(bystander.merchant))
  client.close()
  const rejected: string[] = []
  let requested = 0
  await every(PAGE_INTERVAL_MS, seconds, async () => {
    requested++
    const status = await statusOf(`${url}/pay/${createdOrderId(created)}/events`)
    if (status !== '200') rejected.push(status)
  })
  return rejected.length === 0
    ? []
    : [`another customer's page gets its events: ${rejected.length} of ${requested} failed with ${unique(rejected)}`]
}

async function every(intervalMs: number, seconds: number, act: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + seconds * 1_000
  while (performance.now() < deadline) await Promise.all([act(), sleep(intervalMs)])
}

/** Returns the status of a response without waiting for its end. */
function statusOf(url: string): Promise<string> {
  return new Promise((resolve) => {
    const call = get(
      url,
      { agent: false, localAddress: BYSTANDER_ADDRESS, timeout: PAGE_TIMEOUT_MS },
      ({ statusCode }) => {
        resolve(String(statusCode))
        call.destroy()
      },
    )
    call.on('timeout', () => call.destroy(new Error('no response'))).on('error', ({ message }) => resolve(message))
  })
}

const unique = (values: string[]) => [...new Set(values)].join(', ')
