import { LIMITS } from '../../limits.ts'
import { createShutdown } from '../../platform/shutdown.ts'
import { type Command, type Context, read } from '../commands/command.ts'
import { CommandError } from '../commands/errors.ts'
import { record } from '../commands/result.ts'
import { createOperatorKeys } from './operator-keys.ts'

/** Returns the command that serves those of the commands in `groups` that have a title. */
export const consoleCommand = (groups: Readonly<Record<string, readonly Command[]>>): Command =>
  read('console', 'Serve the operator console until Ctrl-C', {
    note: 'Operators sign in with a key of ops keys create --operator.',
    async run(_input, context) {
      const { config, db, now } = context
      if (!(await createOperatorKeys(db).isAnyValid(now))) throw new CommandError(NO_KEY)
      // Imported here, because the web server would delay the start of every other command.
      const { createConsole } = await import('./app.ts')
      const app = await createConsole({ groups, context, now: () => new Date(), limits: LIMITS })
      const address = await app
        .listen({ host: config.consoleHost, port: config.consolePort })
        .catch(({ message }: Error) => {
          throw new CommandError(`${message}: set another CONSOLE_PORT or CONSOLE_HOST`)
        })
      return { screens: untilStopped(address, () => app.close(), context) }
    },
  })

const NO_KEY = 'no operator has a valid key: create one with ops keys create --operator NAME --rights read,act'

async function* untilStopped(address: string, close: () => Promise<unknown>, { note }: Pick<Context, 'note'>) {
  const say = (...said: unknown[]) => note(String(said.at(-1)))
  const stopped = new Promise<void>((resolve) => {
    // A connection that outlasts the limit would keep the process running.
    const exit = (code: 0 | 1) => (code === 0 ? resolve() : process.exit(code))
    const shutdown = createShutdown({ drainSeconds: 0, log: { info: say, warn: say }, close, exit }, LIMITS.shutdown)
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => shutdown.stop(signal))
  })
  yield record({ address })
  await stopped
}
