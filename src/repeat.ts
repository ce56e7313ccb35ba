/**
 * Calls `look` again and again until `stop`, each time after `pauseMs`. What it throws goes to `onError`, and it is called again
 * as usual. `stop` waits for a call that is under way.
 */
export function startRepeating(look: () => Promise<void>, pauseMs: number, onError: (error: Error) => void) {
  let timer: NodeJS.Timeout | undefined
  let looking = Promise.resolve()
  let stopped = false

  function lookLater() {
    if (stopped) return
    timer = setTimeout(() => {
      looking = look().catch(onError).then(lookLater)
    }, pauseMs)
  }

  lookLater()
  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await looking
    },
  }
}
