import type { Caller } from '../outside/call.ts'
import { AcquirerFault, type Ask } from './acquirer.ts'

export function createAsk(call: Caller): Ask {
  return async ({ body, ...request }) => {
    const json = body !== undefined && {
      headers: { 'content-type': 'application/json', ...request.headers },
      body: JSON.stringify(body),
    }
    const answer = await call({ ...request, ...json, kind: 'acquirer' })
    if ('failure' in answer) {
      const fault = new AcquirerFault('unavailable', `the acquirer cannot be reached: ${answer.text}`)
      throw answer.isUnsent ? undone(fault) : fault
    }
    return { status: answer.status, body: parse(answer.body), requestId: shortText(answer.headers?.requestid) }
  }
}

/** Marks a fault as one of something that was not done. Other errors pass unchanged. */
export function undone<E>(error: E): E {
  if (error instanceof AcquirerFault) error.isUndone = true
  return error
}

function parse(body: Buffer | undefined): unknown {
  try {
    return JSON.parse(String(body))
  } catch {
    return undefined
  }
}

/** `text` for the log; undefined unless it is short and plain, because a stranger sent it. */
export function shortText(text: unknown): string | undefined {
  return typeof text === 'string' && /^[\w.:-]{1,100}$/.test(text) ? text : undefined
}
