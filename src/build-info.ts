import manifest from '../package.json' with { type: 'json' }

/** Replaced by the build with the short id of its commit. A checkout that runs unbuilt has no such constant. */
declare const BUILD_COMMIT: string | undefined

export const BUILD = {
  version: manifest.version,
  commit: typeof BUILD_COMMIT === 'string' ? BUILD_COMMIT : 'unknown',
}
