import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** Set where time is taken: in `npm run test:slow`. */
    isSlow?: true
  }
}

const QUICK_RUNS = 50

/** How often a property is tried: `many` times in `npm run test:slow`, at most 50 in `npm test`. */
export const runs = (many: number): number => (inject('isSlow') ? many : Math.min(many, QUICK_RUNS))
