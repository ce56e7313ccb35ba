import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** Set in `npm run test:generated`, which runs long on new random input. */
    isGenerated?: true
  }
}

/** Whether this is `npm run test:generated`. */
export const isGenerated = (): boolean => inject('isGenerated') === true

/** Number of runs of a property: `many` in `npm run test:generated`, `few` in `npm test`. */
export const runs = (many: number, few = 50): number => (isGenerated() ? many : Math.min(many, few))
