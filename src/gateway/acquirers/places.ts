/** The slot of one notification, which has no slot until `take` resolves. */
export type Place = {
  /** Waits for a slot. Throws what `check` throws after the wait, and then has no slot. */
  take: () => Promise<void>
  /** Releases the slot, if there is one, in the next turn of the event loop. */
  free: () => void
  /** Throws if the sender of the notification no longer waits. */
  check: () => void
}

/**
 * Limits the concurrent notifications of each acquirer account to `most`, in order of arrival. A flood from one account
 * thus leaves database connections to other accounts and event-loop time to payments.
 */
export function createPlaces(most: number) {
  const accounts = new Map<string, { taken: number; waiting: (() => void)[] }>()

  return (account: string, check: () => void): Place => {
    const places = accounts.get(account) ?? { taken: 0, waiting: [] }
    accounts.set(account, places)
    let isTaken = false

    function free() {
      if (!isTaken) return
      isTaken = false
      setImmediate(() => {
        const next = places.waiting.shift()
        if (next) next()
        else places.taken -= 1
      })
    }

    async function take() {
      if (places.taken < most) places.taken += 1
      else await new Promise<void>((resolve) => places.waiting.push(resolve))
      isTaken = true
      try {
        check()
      } catch (error) {
        free()
        throw error
      }
    }

    return { take, free, check }
  }
}
