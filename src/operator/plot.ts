import { type Html, html } from '../html.ts'

/**
 * One bar: the count of its whole height, the count of the coloured part, and its tooltip. Without a count it is a gap.
 */
export type Bar = { whole: number | undefined; part: number; text: string }

/** Sizes within the SVG, which is stretched to its place on the page: only their proportions matter. */
const BAR_WIDTH = 10
const GAP = 2
const HEIGHT = 100

/**
 * Draws bars as SVG, without a script and without a style of its own: the classes `whole` and `part` colour it. `label`
 * describes the plot to readers who do not see it; the numbers must stand in a table beside it.
 */
export function plot(bars: readonly Bar[], label: string): Html {
  const most = Math.max(1, ...bars.map(({ whole = 0 }) => whole))
  const rect = (kind: string, index: number, count: number) => {
    const height = Math.round((count / most) * HEIGHT * 100) / 100
    return html`<rect class="${kind}" x="${index * BAR_WIDTH + GAP / 2}" y="${HEIGHT - height}" width="${BAR_WIDTH - GAP}" height="${height}"/>`
  }
  const drawn = bars.map(
    ({ whole = 0, part, text }, index) =>
      html`<g><title>${text}</title>${rect('whole', index, whole)}${rect('part', index, part)}</g>\n`,
  )
  const width = bars.length * BAR_WIDTH
  return html`<svg class="plot" role="img" aria-label="${label}" viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none">
${drawn}</svg>`
}
