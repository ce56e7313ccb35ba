import { main } from './run.ts'

// A pipe's reader may exit early, as in `ops merchants list | head -1`. The EPIPE that follows is ignored.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}

process.exitCode = await main(process.argv.slice(2), process)
