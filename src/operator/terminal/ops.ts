import { main } from './main.ts'

// The program that reads a pipe may exit early, as in `ops merchants list | head -1`. The resulting EPIPE is ignored.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}

process.exitCode = await main(process.argv.slice(2), process)
