import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { COLOURS, SAMPLE_COLOURS } from '../platform/colours.ts'

/** Library files by name. A build bundles minisearch. */
const LIBRARIES: Record<string, string> = {
  'openapi-explorer.min.js': 'openapi-explorer/dist/browser/openapi-explorer.min.js',
  'minisearch.js': 'minisearch',
}

/** The scripts and style sheets of the documentation. */
export const ASSETS = ['guide.css', 'guide.js', 'search.js', 'reference.js', ...Object.keys(LIBRARIES)]

/** Reads a script or style sheet in src/docs/ui, or the script of a library. */
export async function readAsset(name: string): Promise<string> {
  const ours = new URL(`./ui/${name}`, import.meta.url)
  const file = existsSync(ours) ? ours : fileURLToPath(import.meta.resolve(LIBRARIES[name] as string))
  const text = await readFile(file, 'utf8')
  return name === 'guide.css' ? COLOURS + SAMPLE_COLOURS + text : text
}
