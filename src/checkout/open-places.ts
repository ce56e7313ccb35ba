import type { Limits } from '../limits.ts'

export type OpenPlaces = ReturnType<typeof createOpenPlaces>

/** Shares out the places of pages that wait for events. A page that gets none asks for its state every few seconds. */
export function createOpenPlaces({ open, openOfOrder, scarceFrom, scarceOfAddress }: Limits['pages']) {
  const ofOrder = createCounts()
  const ofAddress = createCounts()
  let taken = 0

  return {
    /** Takes a place for a page of `orderId` opened from `ip`. Returns what gives it back; undefined when there is none. */
    take(orderId: string, ip: string): (() => void) | undefined {
      const address = networkOf(ip)
      if (taken >= open || ofOrder.of(orderId) >= openOfOrder) return undefined
      if (taken >= scarceFrom && ofAddress.of(address) >= scarceOfAddress) return undefined
      taken++
      ofOrder.add(orderId)
      ofAddress.add(address)
      let mine = true
      return () => {
        if (!mine) return
        mine = false
        taken--
        ofOrder.remove(orderId)
        ofAddress.remove(address)
      }
    },
  }
}

function createCounts() {
  const counts = new Map<string, number>()
  const of = (key: string) => counts.get(key) ?? 0
  return {
    of,
    add: (key: string) => void counts.set(key, of(key) + 1),
    remove(key: string) {
      if (of(key) > 1) counts.set(key, of(key) - 1)
      else counts.delete(key)
    },
  }
}

/** An IPv4 address, or the first 64 bits of an IPv6 one: a subscriber is given all that begin with them. */
export function networkOf(ip: string): string {
  // ::ffff:192.0.2.1 is how IPv4 arrives at a socket that takes both.
  if (ip.includes('.')) return ip.slice(ip.lastIndexOf(':') + 1)
  const [head = '', tail] = ip.split('::')
  const [first, last] = [head, tail ?? ''].map((groups) => groups.split(':').filter((group) => group !== '')) as [
    string[],
    string[],
  ]
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length
  return [...first, ...Array(Math.max(0, zeros)).fill('0'), ...last].slice(0, 4).join(':')
}
