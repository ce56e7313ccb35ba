import { createCounts, createPlaces } from '../http/places.ts'
import type { Limits } from '../limits.ts'

export type OpenPlaces = ReturnType<typeof createOpenPlaces>

/** Shares out the places of pages that wait for events. A page that gets none asks for its state every few seconds. */
export function createOpenPlaces({ open, openOfOrder, scarceFrom, scarceOfAddress }: Limits['pages']) {
  const places = createPlaces({ all: open, scarceFrom, scarceOfAddress })
  const ofOrder = createCounts()

  return {
    /** Takes a place for a page of `orderId` opened from `ip`. Returns the function that gives it back, or undefined. */
    take(orderId: string, ip: string): (() => void) | undefined {
      const leave = ofOrder.of(orderId) < openOfOrder ? places.take(ip) : undefined
      if (leave === undefined) return undefined
      ofOrder.add(orderId)
      let mine = true
      return () => {
        if (mine) ofOrder.remove(orderId)
        mine = false
        leave()
      }
    },
  }
}
