/**
 * Calls `look` again and again until `stop`: first after `firstPauseMs`, then each time after the pause, in ms, that it
 * resolved to. It must not reject. `stop` waits for a call that is under way.
 */
export function startRepeating(look: () => Promise<number>, firstPauseMs: number) {
  let timer: NodeJS.Timeout | undefined
  let looking = Promise.resolve()
  let stopped = false

  function lookAfter(pauseMs: number) {
    if (stopped) return
    timer = setTimeout(() => {
      looking = look().then(lookAfter)
    }, pauseMs)
  }

  lookAfter(firstPauseMs)
  return {
    isStopped: () => stopped,
    async stop() {
      stopped = true
      clearTimeout(timer)
      await looking
    },
  }
}
