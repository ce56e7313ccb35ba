/** What the fake of Setu does wrong on purpose. */

/** How a call fails. With a status it is not done; else it is done, and the answer to it is spoilt. */
export type CallFault =
  | { status: number }
  | { afterMs: number }
  | { until: Promise<unknown> }
  /** It arrives only then, and its answer never does. */
  | { arrivesAfterMs: number }
  | 'no answer'
  | 'half a body'
  | 'huge body'
  | 'no JSON'
  | 'no fields'
  | 'another order'
  | keyof typeof SPOILT_LINKS

const SPOILT_LINKS = {
  'wrong payee': (link: string) => link.replace('pa=', 'pa=not-'),
  'two payees': (link: string) => `${link}&pa=other@examplebank`,
  'two payees, one in capitals': (link: string) => `${link}&PA=other@examplebank`,
  'two payees, one encoded': (link: string) => `${link}&p%61=other@examplebank`,
  'two amounts, one in capitals': (link: string) => `${link}&AM=1.00`,
  'wrong amount': (link: string) => link.replace(/am=\d+/, '$&9'),
  'no amount': (link: string) => link.replace('am=', 'mam='),
  'lower minimum': (link: string) => `${link}&mam=1.00`,
  'wrong currency': (link: string) => link.replace('cu=INR', 'cu=USD'),
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

/** `isCut` ends it in the middle of its body. */
export type Answer = { status: number; body: string; isCut?: boolean }

const HUGE_BYTES = 1024 * 1024

/** What is left of an answer. */
export function spoil(
  answer: Answer,
  fault: Exclude<CallFault, { status: number } | { arrivesAfterMs: number } | 'no answer'>,
): Answer {
  if (typeof fault === 'object') return answer
  switch (fault) {
    case 'half a body':
      return { ...answer, isCut: true }
    case 'huge body':
      return { ...answer, body: JSON.stringify({ ...JSON.parse(answer.body), padding: ' '.repeat(HUGE_BYTES) }) }
    case 'no JSON':
      return { ...answer, body: '<html>It works</html>' }
    case 'no fields':
      return { ...answer, body: '{}' }
    case 'another order':
      return { ...answer, body: JSON.stringify({ ...JSON.parse(answer.body), referenceId: 'another' }) }
    default: {
      const body = JSON.parse(answer.body)
      return { ...answer, body: JSON.stringify({ ...body, intentLink: SPOILT_LINKS[fault](body.intentLink) }) }
    }
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
