import { type Html, html } from '../../platform/html.ts'

/** A bar of height `whole` with a part of height `part` in another colour, and a tooltip with `text`. */
export type Bar = { whole: number; part: number; text: string }

/**
 * Widths and heights are in SVG units. Only their proportions matter, because CSS stretches the SVG to the width of the
 * page.
 */
const BAR_WIDTH = 10
const GAP = 2
const HEIGHT = 100

/**
 * Draws bars as SVG without script or inline style. CSS colours the classes `whole` and `part`. `label` describes the
 * plot to screen readers, so a table next to the plot must show the numbers.
 */
export function plot(bars: readonly Bar[], label: string): Html {
  const most = Math.max(1, ...bars.map(({ whole }) => whole))
  const rect = (kind: string, index: number, count: number) => {
    const height = Math.round((count / most) * HEIGHT * 100) / 100
    return html`<rect class="${kind}" x="${index * BAR_WIDTH + GAP / 2}" y="${HEIGHT - height}" width="${BAR_WIDTH - GAP}" height="${height}"/>`
  }
  const drawn = bars.map(
    ({ whole, part, text }, index) =>
      html`<g><title>${text}</title>${rect('whole', index, whole)}${rect('part', index, part)}</g>\n`,
  )
  const width = bars.length * BAR_WIDTH
  return html`<svg class="plot" role="img" aria-label="${label}" viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none">
${drawn}</svg>`
}
