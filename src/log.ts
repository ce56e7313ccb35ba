import { type Logger, pino } from 'pino'
import type { Limits } from './limits.ts'

/**
 * The log of the process, on its standard output; `flush` writes what has gathered. Where it cannot be written, the service
 * goes on and tries again with the next lines.
 */
export function openLog(
  level: string,
  { bufferBytes, flushIntervalMs, keptBytes }: Limits['log'],
): { log: Logger; flush: () => void } {
  const output = pino.destination({
    minLength: bufferBytes,
    maxLength: keptBytes,
    sync: true,
    // By itself it would sleep until a full pipe is read, and the whole service with it.
    retryEAGAIN: () => false,
  })
  output.on('error', () => undefined)
  const flush = () => output.flush()
  setInterval(flush, flushIntervalMs).unref()
  // Never its flushSync, which tries a full disk again for ever while nothing else runs.
  process.on('exit', () => output.end())
  // Its `write` alone: given more, pino calls flushSync after a fatal line.
  return { log: pino({ level, base: null }, { write: (line) => output.write(line) }), flush }
}
