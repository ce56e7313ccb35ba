/** Numbers and times as the operator reads them, at the command line and on the page. */

const INDIAN = new Intl.NumberFormat('en-IN')

/** `12,34,567` */
export const countText = (count: number): string => INDIAN.format(count)

/** `82.4 %`; a share that is not all never reads as 100 %. */
export function shareText(share: number): string {
  return `${(Math.floor(share * 1000) / 10).toFixed(1)} %`
}

const UNITS = [
  ['s', 1_000],
  ['min', 60_000],
  ['h', 60 * 60_000],
  ['days', 24 * 60 * 60_000],
] as const

/** How long it is since `moment`, rounded down: `12 s`, `3 h`, `2 days`. Two of a unit are its least, so that one is never far off. */
export function ageText(moment: Date, now: Date): string {
  const ms = Math.max(0, now.getTime() - moment.getTime())
  const [unit, unitMs] = UNITS.findLast(([, each]) => ms >= 2 * each) ?? UNITS[0]
  return `${Math.floor(ms / unitMs)} ${unit}`
}
