import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** Set where time is taken: in `npm run test:slow`. */
    isSlow?: true
  }
}

/** Whether this is `npm run test:slow`. */
export const isSlow = (): boolean => inject('isSlow') === true

/** How often a property is tried: `many` times in `npm run test:slow`, `few` times in `npm test`. */
export const runs = (many: number, few = 50): number => (isSlow() ? many : Math.min(many, few))
