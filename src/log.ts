import { type Logger, pino } from 'pino'

/** Lines are written together: one system call a line took 4 % of a request. */
const BUFFER_BYTES = 8_192
/** The longest that a line waits to be written, and what is lost of the log when the process is killed. */
const FLUSH_INTERVAL_MS = 500
/** What is kept while nothing can be written, such as on a full disk; further lines are lost. */
const KEPT_BYTES = 1024 * 1024

/**
 * The log of the process, on its standard output; `flush` writes what has gathered. Where it cannot be written, the service
 * goes on and tries again with the next lines.
 */
export function openLog(level: string): { log: Logger; flush: () => void } {
  const output = pino.destination({
    minLength: BUFFER_BYTES,
    maxLength: KEPT_BYTES,
    sync: true,
    // By itself it would sleep until a full pipe is read, and the whole service with it.
    retryEAGAIN: () => false,
  })
  output.on('error', () => undefined)
  const flush = () => output.flush()
  setInterval(flush, FLUSH_INTERVAL_MS).unref()
  // Never its flushSync, which tries a full disk again for ever while nothing else runs.
  process.on('exit', () => output.end())
  // Its `write` alone: given more, pino calls flushSync after a fatal line.
  return { log: pino({ level, base: null }, { write: (line) => output.write(line) }), flush }
}
