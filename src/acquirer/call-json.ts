import { AcquirerFault } from './issuer.ts'

/** What came back: the status, the body if it is JSON, and the acquirer's name for the request, which its support asks for. */
export type JsonAnswer = { status: number; body: unknown; requestId: string | undefined }

/**
 * One call of an acquirer's HTTP interface. No redirect is followed: it would carry the credentials elsewhere. Rejects with
 * an AcquirerFault when no whole answer of at most `maxBytes` comes within `timeoutMs`.
 */
export async function callJson(
  url: string,
  { timeoutMs, maxBytes, body, ...request }: CallOptions,
): Promise<JsonAnswer> {
  // It takes no fraction of a millisecond.
  const signal = AbortSignal.timeout(Math.max(0, Math.ceil(timeoutMs)))
  try {
    const response = await fetch(url, {
      ...request,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: 'manual',
      signal,
    })
    const text = await readAtMost(response, maxBytes)
    return { status: response.status, body: parse(text), requestId: shortText(response.headers.get('requestid')) }
  } catch (error) {
    if (error instanceof AcquirerFault) throw error
    if (signal.aborted) throw new AcquirerFault('unavailable', 'the acquirer did not answer in time')
    // fetch hides the cause, such as ECONNREFUSED, in its error's cause.
    const { code } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
    throw new AcquirerFault('unavailable', 'the acquirer cannot be reached', { code })
  }
}

type CallOptions = {
  method: 'GET' | 'POST' | 'PUT'
  headers: Record<string, string>
  body?: unknown
  timeoutMs: number
  maxBytes: number
}

async function readAtMost({ body }: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > maxBytes) throw new AcquirerFault('bad answer', 'the answer of the acquirer is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What a stranger sends goes into the log only if it is short and plain. */
export function shortText(text: unknown): string | undefined {
  return typeof text === 'string' && /^[\w.:-]{1,100}$/.test(text) ? text : undefined
}
