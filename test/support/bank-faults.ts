/** The faults that the fake of an acquirer can inject. */

/**
 * How a call fails. A call with a status or a redirect has no effect; any other fault lets the call take effect and
 * spoils its response.
 */
export type CallFault =
  | { status: number }
  | { afterMs: number }
  | { until: Promise<unknown> }
  /** Changes the body of the response. */
  | { change: (body: Json) => Json | undefined }
  /** The request takes effect only after this time, and its response never arrives. */
  | { arrivesAfterMs: number }
  /** Redirects to the same call, which succeeds. */
  | 'redirect'
  /** A proxy repeats the request, and the second response is returned. */
  | 'sent twice'
  /** The response follows an interim response with status 101. */
  | 'interim response'
  | SpoiltResponse

export type SpoiltResponse =
  /** The connection breaks. */
  'no response' | 'half a body' | 'huge body' | 'no JSON' | 'no fields' | 'another order' | keyof typeof SPOILT_LINKS

const SPOILT_LINKS = {
  'wrong payee': (link: string) => link.replace('pa=', 'pa=not-'),
  'two payees': (link: string) => `${link}&pa=other@examplebank`,
  'two payees, one in capitals': (link: string) => `${link}&PA=other@examplebank`,
  'two payees, one encoded': (link: string) => `${link}&p%61=other@examplebank`,
  'two amounts, one in capitals': (link: string) => `${link}&AM=1.00`,
  'wrong amount': (link: string) => link.replace(/am=\d+/, '$&9'),
  'no amount': (link: string) => link.replace('am=', 'mam='),
  'lower minimum': (link: string) => `${link}&mam=1.00`,
  'wrong currency': (link: string) => `${link.replace('&cu=INR', '')}&cu=USD`,
  'no tr': (link: string) => link.replace('tr=', 'x='),
  'other scheme': (link: string) => link.replace('upi:', 'https:'),
}

/** Probability of each fault of a payment's notifications, from 0 to 1. */
export type NotificationFaults = {
  /** One notification is never sent. */
  lost?: number
  /** Every notification is sent twice. */
  repeated?: number
  /** The last notification is sent first. */
  reordered?: number
  /** One notification waits for `sendWaiting`. */
  late?: number
  /** An additional notification reports a success, signed with another secret. */
  forged?: number
  /** An additional notification reports a success with another amount. */
  contradicted?: number
}

/** `isCut` truncates the body, `isInterim` sends an interim response with status 101 first. */
export type BankResponse = {
  status: number
  body: string
  headers?: Record<string, string>
  isCut?: boolean
  isInterim?: boolean
}

/** How a response contains the link and the service's order id. */
export type ResponseFields = {
  withLink: (body: Json, change: (link: string) => string) => Json
  withOrder: (body: Json, orderId: string) => Json
}

// biome-ignore lint/suspicious/noExplicitAny: each acquirer has answers of its own
type Json = any

const HUGE_BYTES = 1024 * 1024

/** Returns the spoilt response; undefined for none. */
export function spoil(
  response: BankResponse,
  fault: SpoiltResponse,
  { withLink, withOrder }: ResponseFields,
): BankResponse | undefined {
  const changed = (change: (body: Json) => Json) => ({
    ...response,
    body: JSON.stringify(change(JSON.parse(response.body))),
  })
  switch (fault) {
    case 'no response':
      return undefined
    case 'half a body':
      return { ...response, isCut: true }
    case 'huge body':
      return { ...response, body: ' '.repeat(HUGE_BYTES) + response.body }
    case 'no JSON':
      return { ...response, body: '<html>It works</html>' }
    case 'no fields':
      return { ...response, body: '{}' }
    case 'another order':
      return changed((body) => withOrder(body, 'another'))
    default:
      return changed((body) => withLink(body, SPOILT_LINKS[fault]))
  }
}

/** Returns pseudo-random numbers from 0 to 1, the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
