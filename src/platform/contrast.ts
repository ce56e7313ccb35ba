/** Contrasts of colours `#rrggbb`, as defined by WCAG 2.2. */

/** The contrast of two colours, 1 to 21. */
export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

/** Black or white, whichever contrasts more with the background: at least 4.5 to 1 for any colour. */
export const textOn = (background: string): '#000000' | '#ffffff' =>
  contrast(background, '#ffffff') >= contrast(background, '#000000') ? '#ffffff' : '#000000'

/**
 * The lightest colour of the same hue and saturation that is not lighter than `colour` and has the contrast `least`
 * against white.
 */
export function darkened(colour: string, least: number): string {
  const channels = channelsOf(colour)
  const brightest = Math.max(...channels)
  for (let top = brightest; top > 0; top--) {
    const darker = `#${channels.map((channel) => toHex(Math.round((channel * top) / brightest))).join('')}`
    if (contrast(darker, '#ffffff') >= least) return darker
  }
  return '#000000'
}

const channelsOf = (colour: string) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16))
const toHex = (channel: number) => channel.toString(16).padStart(2, '0')

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = channelsOf(colour)
    .map((channel) => channel / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
