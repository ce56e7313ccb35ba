// A process that uses the embedded server in DIRECTORY and exits when its stdin ends: when the process that started it
// exits or is killed.
// Arguments: DIRECTORY [--remove]
import { rmSync } from 'node:fs'
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { INSTALLED_POSTGRES } from './installed-postgres.ts'

const [directory = '', remove] = process.argv.slice(2)
process.on('exit', () => {
  // Another server in the directory may be shutting down and still write.
  if (remove) rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})
const { url, stop } = await startEmbeddedPostgres({ directory, durable: false, installed: INSTALLED_POSTGRES })
process.prependListener('exit', stop)
process.stdin.on('end', () => process.exit(0)).resume()
console.log(url)
