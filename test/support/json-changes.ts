export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }
export type Path = readonly (string | number)[]

/** Every path in `body` except the root. */
export function pathsIn(body: Json, path: Path = []): Path[] {
  const own = path.length > 0 ? [path] : []
  if (body === null || typeof body !== 'object') return own
  return [...own, ...Object.entries(body).flatMap(([name, value]) => pathsIn(value, [...path, name]))]
}

/** Replaces the value at `path` of `body` by the result of `become`; removes it if the result is undefined. */
export function changeAt(body: Json, path: Path, become: (value: Json) => Json | undefined): void {
  const name = path.at(-1) as string
  const holder = path.slice(0, -1).reduce((at, step) => (Object(at) as { [name: string]: Json })[step] as Json, body)
  if (holder === null || typeof holder !== 'object' || !(name in holder)) return
  const fields = holder as { [name: string]: Json }
  const value = become(fields[name] as Json)
  if (value === undefined) delete fields[name]
  else fields[name] = value
}
