import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** Set in `npm run test:generated`, which takes long and new input. */
    isGenerated?: true
  }
}

/** Whether this is `npm run test:generated`. */
export const isGenerated = (): boolean => inject('isGenerated') === true

/** How often a property is tried: `many` times in `npm run test:generated`, `few` times in `npm test`. */
export const runs = (many: number, few = 50): number => (isGenerated() ? many : Math.min(many, few))
