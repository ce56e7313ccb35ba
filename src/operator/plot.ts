import { type Html, html } from '../html.ts'

/** A bar of `whole` height with a coloured `part`, and its tooltip. Without `whole` it is a gap. */
export type Bar = { whole: number | undefined; part: number; text: string }

/** Sizes within the SVG, which is stretched: only their proportions matter. */
const BAR_WIDTH = 10
const GAP = 2
const HEIGHT = 100

/**
 * Draws bars as SVG without script or inline style: the classes `whole` and `part` colour them. `label` describes the
 * plot to people who do not see it; a table beside it must have the numbers.
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
