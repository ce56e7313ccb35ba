import { main } from './run.ts'

// The reader of a pipe may stop early, as in `ops merchants list | head -1`: the EPIPE that follows is ignored.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}

process.exitCode = await main(process.argv.slice(2), process)
