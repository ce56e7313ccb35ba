// A process that uses the embedded server in DIRECTORY and leaves when its stdin ends, that is when the process that
// started it leaves or is killed, however hard.
// Arguments: DIRECTORY [--remove]
import { rmSync } from 'node:fs'
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { INSTALLED_POSTGRES } from './installed-postgres.ts'

const [directory = '', remove] = process.argv.slice(2)
process.on('exit', () => {
  // Another server may be about to end in there, and still write.
  if (remove) rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})
const { url, stop } = await startEmbeddedPostgres({ directory, durable: false, installed: INSTALLED_POSTGRES })
process.prependListener('exit', stop)
process.stdin.on('end', () => process.exit(0)).resume()
console.log(url)
