import { type Logger, pino } from 'pino'

/** Lines are written together: one system call a line took 4 % of a request. */
const BUFFER_BYTES = 8_192
/** The longest that a line waits to be written, and what is lost of the log when the process is killed. */
const FLUSH_INTERVAL_MS = 500
/** What is kept while nothing can be written, such as on a full disk; further lines are lost. */
const KEPT_BYTES = 1024 * 1024

/**
 * The log of the process, on its standard output; `flush` writes the buffered lines. When writing fails, the service
 * goes on and tries again with the next lines.
 */
export function openLog(level: string): { log: Logger; flush: () => void } {
  const output = pino.destination({
    minLength: BUFFER_BYTES,
    maxLength: KEPT_BYTES,
    sync: true,
    // By default pino sleeps until a full pipe is read, and the whole service sleeps with it.
    retryEAGAIN: () => false,
  })
  output.on('error', () => undefined)
  const flush = () => output.flush()
  setInterval(flush, FLUSH_INTERVAL_MS).unref()
  // `end` and not `flushSync`, which tries a full disk again for ever while nothing else runs.
  process.on('exit', () => output.end())
  // pino gets `write` alone: given the whole destination, it calls flushSync after a fatal line.
  return { log: pino({ level, base: null }, { write: (line) => output.write(line) }), flush }
}
