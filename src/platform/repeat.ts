/**
 * Calls `look` until `stop`, each time `pauseMs` after the previous call has finished. An error is passed to `onError`
 * and does not stop the repetition. `stop` waits for a call in progress.
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
