/**
 * Shares out `all` places. Once `scarceFrom` are taken, an address gets one only while it has fewer than
 * `scarceOfAddress`.
 */
export function createPlaces(limits: { all: number; scarceFrom: number; scarceOfAddress: number }) {
  const ofAddress = createCounts()
  let taken = 0

  return {
    /** Takes a place for `ip`. Returns the function that gives it back; undefined when there is none. */
    take(ip: string): (() => void) | undefined {
      const address = networkOf(ip)
      if (taken >= limits.all) return undefined
      if (taken >= limits.scarceFrom && ofAddress.of(address) >= limits.scarceOfAddress) return undefined
      taken++
      ofAddress.add(address)
      let mine = true
      return () => {
        if (!mine) return
        mine = false
        taken--
        ofAddress.remove(address)
      }
    },
  }
}

export function createCounts() {
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
