/**
 * Calls `look` until `stop`, each time `pauseMs` after the last call ended. An error goes to `onError` and does not end the
 * repetition. `stop` waits for a call under way.
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
