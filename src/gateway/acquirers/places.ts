/**
 * Returns a function that resolves once a signed notification of an acquirer account may be processed: `most` at a time, in their
 * order, so that one account's flood leaves database connections to the others, and turns of the event loop to payments. It
 * resolves to a function that frees the place in the next turn.
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
