import type { ServerResponse } from 'node:http'

/**
 * Returns a function that resolves once a signed notification of an acquirer account may be processed: `most` at a time, in their
 * order. So one account's flood leaves database connections to the others, and turns of the event loop to payments. A place
 * is free again in the turn after the response.
 */
export function createPlaces(most: number) {
  const accounts = new Map<string, { taken: number; waiting: (() => void)[] }>()

  return async (account: string, response: ServerResponse): Promise<void> => {
    const places = accounts.get(account) ?? { taken: 0, waiting: [] }
    accounts.set(account, places)
    if (places.taken < most) places.taken += 1
    else await new Promise<void>((resolve) => places.waiting.push(resolve))
    const free = () =>
      setImmediate(() => {
        const next = places.waiting.shift()
        if (next) next()
        else places.taken -= 1
      })
    // The client may have left while the notification waited.
    if (response.closed) free()
    else response.once('close', free)
  }
}
