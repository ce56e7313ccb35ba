/** What the fake of an acquirer does wrong on purpose. */

/** How a call fails. With a status, or as a redirect, it is not done; else it is done, and the answer to it is spoilt. */
export type CallFault =
  | { status: number }
  | { afterMs: number }
  | { until: Promise<unknown> }
  /** It arrives only then, and its answer never does. */
  | { arrivesAfterMs: number }
  /** To the very same call, which succeeds. */
  | 'redirect'
  /** A proxy sends it twice, and the second answer comes. */
  | 'sent twice'
  /** The answer follows on one of status 101. */
  | 'interim answer'
  | SpoiltAnswer

export type SpoiltAnswer =
  /** The connection breaks off. */
  'no answer' | 'half a body' | 'huge body' | 'no JSON' | 'no fields' | 'another order' | keyof typeof SPOILT_LINKS

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

/** How likely each fault of a payment's notifications is, from 0 to 1. */
export type NotificationFaults = {
  /** One is never sent. */
  lost?: number
  /** All are sent twice. */
  repeated?: number
  /** The last one comes first. */
  reordered?: number
  /** One waits for `sendWaiting`. */
  late?: number
  /** One more tells of a success, with a signature of somebody else. */
  forged?: number
  /** One more tells of a success with another amount. */
  contradicted?: number
}

/** `isCut` ends it in the middle of its body, `isInterim` begins it with status 101. */
export type Answer = {
  status: number
  body: string
  headers?: Record<string, string>
  isCut?: boolean
  isInterim?: boolean
}

/** Where the answers of an acquirer tell the link and our name for the order. */
export type AnswerFields = {
  withLink: (body: Json, change: (link: string) => string) => Json
  withOrder: (body: Json, orderId: string) => Json
}

// biome-ignore lint/suspicious/noExplicitAny: each acquirer has answers of its own
type Json = any

const HUGE_BYTES = 1024 * 1024

/** What is left of an answer; undefined where nothing is. */
export function spoil(answer: Answer, fault: SpoiltAnswer, { withLink, withOrder }: AnswerFields): Answer | undefined {
  const changed = (change: (body: Json) => Json) => ({
    ...answer,
    body: JSON.stringify(change(JSON.parse(answer.body))),
  })
  switch (fault) {
    case 'no answer':
      return undefined
    case 'half a body':
      return { ...answer, isCut: true }
    case 'huge body':
      return { ...answer, body: ' '.repeat(HUGE_BYTES) + answer.body }
    case 'no JSON':
      return { ...answer, body: '<html>It works</html>' }
    case 'no fields':
      return { ...answer, body: '{}' }
    case 'another order':
      return changed((body) => withOrder(body, 'another'))
    default:
      return changed((body) => withLink(body, SPOILT_LINKS[fault]))
  }
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
