/**
 * Limits the concurrent notifications of each acquirer account to `most`, in order of arrival. A flood from one account
 * thus leaves database connections to other accounts and event-loop time to payments. When a notification may proceed,
 * the returned function resolves to a function that releases the slot in the next turn of the event loop.
 */
export function createPlaces(most: number) {
  const accounts = new Map<string, { taken: number; waiting: (() => void)[] }>()

  return async (account: string): Promise<() => void> => {
    const places = accounts.get(account) ?? { taken: 0, waiting: [] }
    accounts.set(account, places)
    if (places.taken < most) places.taken += 1
    else await new Promise<void>((resolve) => places.waiting.push(resolve))
    return () =>
      void setImmediate(() => {
        const next = places.waiting.shift()
        if (next) next()
        else places.taken -= 1
      })
  }
}
