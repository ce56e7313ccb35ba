/**
 * Returns untrusted text as one line that is safe to show anywhere: without control characters and characters that
 * reverse text.
 */
export function printableLine(text: string, characters: number): string {
  const line = text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S}]+|\uFFFD+/gu, ' ')
  return [...line.trim()].slice(0, characters).join('')
}
