import { type Logger, pino } from 'pino'

/** Size of the buffer. Buffered lines are written together, because a system call for each line is slow. */
const BUFFER_BYTES = 8_192
/** Longest time until a line is written. A process that is killed loses the lines logged within this time. */
const FLUSH_INTERVAL_MS = 500
/**
 * Largest number of bytes buffered while nothing can be written, for example on a full disk. Further lines are lost.
 */
const RETAINED_BYTES = 1024 * 1024

/** The log on standard output. If writing fails, the service continues and writes the buffer with the next lines. */
export function openLog(level: string): { log: Logger; flush: () => void } {
  const output = pino.destination({
    minLength: BUFFER_BYTES,
    maxLength: RETAINED_BYTES,
    sync: true,
    // Does not retry, because by default pino sleeps until a full pipe is read, and thereby blocks the whole service.
    retryEAGAIN: () => false,
  })
  output.on('error', () => undefined)
  const flush = () => output.flush()
  setInterval(flush, FLUSH_INTERVAL_MS).unref()
  // Calls `end` instead of `flushSync`, because on a full disk flushSync retries forever and blocks the process.
  process.on('exit', () => output.end())
  // pino receives only `write`, because with the whole destination pino would call flushSync after a fatal line.
  return {
    log: pino(
      { level, base: null, formatters: { level: (name) => ({ level: name }) } },
      { write: (line) => output.write(line) },
    ),
    flush,
  }
}
