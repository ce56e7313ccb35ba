import { toIstText } from '../ist.ts'

/** What a notification of the acquirer can be refused with. An outage, and a client that left, refuse nothing. */
export const REFUSALS: ReadonlySet<number> = new Set([400, 401, 404, 409, 413, 415])

/** What only the running process knows. */
export type Vitals = {
  /** An Indian day, `YYYY-MM-DD`, and the notifications that were refused on it. */
  refusedOn: string
  refused: number
  /** When one was accepted for the last time, since the process started. */
  lastNotificationAt: Date | undefined
  /** Acquirers that did not answer the last call. */
  acquirersAway: string[]
}

type Listener = {
  notificationRefused: (status: number) => void
  notificationTaken: (at: Date) => void
  acquirerCall: (acquirer: string, call: string, outcome: string) => void
}

/** Remembers of notifications and acquirers what the operator's overview shows, and tells `metrics` of each. */
export function createVitals(metrics: Listener, now: () => Date) {
  let refusedOn = dayOf(now())
  let refused = 0
  let lastNotificationAt: Date | undefined
  const away = new Set<string>()

  function beginDay() {
    const today = dayOf(now())
    if (today === refusedOn) return
    refusedOn = today
    refused = 0
  }

  return {
    /** A request of `route` was answered with `status`. */
    answered(route: string, status: number) {
      if (!route.startsWith('/acquirer/')) return
      if (REFUSALS.has(status)) {
        beginDay()
        refused++
        metrics.notificationRefused(status)
      } else if (status === 200) {
        lastNotificationAt = now()
        metrics.notificationTaken(lastNotificationAt)
      }
    },

    acquirerCall(acquirer: string, call: string, outcome: string) {
      metrics.acquirerCall(acquirer, call, outcome)
      if (outcome === 'unavailable') away.add(acquirer)
      // A call that was not made, because too many were under way, says nothing.
      else if (outcome !== 'crowded') away.delete(acquirer)
    },

    read(): Vitals {
      beginDay()
      return { refusedOn, refused, lastNotificationAt, acquirersAway: [...away].sort() }
    },
  }
}

const dayOf = (moment: Date) => toIstText(moment).slice(0, 10)
