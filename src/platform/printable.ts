/** One line of a stranger's text, safe to show anywhere: no control characters, and none that reverse text. */
export function printableLine(text: string, characters: number): string {
  const line = text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S}]+|\uFFFD+/gu, ' ')
  return [...line.trim()].slice(0, characters).join('')
}
