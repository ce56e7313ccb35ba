/** Text of a stranger as one line that can be shown anywhere: no control characters, and none that turn text around. */
export function printableLine(text: string, characters: number): string {
  const line = text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S}]+|\uFFFD+/gu, ' ')
  return [...line.trim()].slice(0, characters).join('')
}
