/** Indian Standard Time, UTC+05:30 all year. Plain arithmetic: India has no daylight saving, and Intl costs 100 times as much. */

const IST_OFFSET_MS = 330 * 60_000

/** `YYYY-MM-DD HH:MM:SS` in IST. */
export function toIstText(moment: Date): string {
  return inIst(moment).replace('T', ' ')
}

/** ISO 8601 with its offset: `YYYY-MM-DDTHH:MM:SS+05:30`. */
export function toIstIso(moment: Date): string {
  return `${inIst(moment)}+05:30`
}

function inIst(moment: Date): string {
  return new Date(moment.getTime() + IST_OFFSET_MS).toISOString().slice(0, 19)
}
