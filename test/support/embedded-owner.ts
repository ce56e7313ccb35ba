// A process that uses the embedded server in the directory it is given, and leaves when its stdin ends.
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'

const [directory = ''] = process.argv.slice(2)
const { url, stop } = await startEmbeddedPostgres({ directory, durable: false })
process.on('exit', stop)
process.stdin.on('end', () => process.exit(0)).resume()
console.log(url)
