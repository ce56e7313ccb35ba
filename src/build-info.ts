import manifest from '../package.json' with { type: 'json' }

/** The build replaces this constant with the short id of the commit. Without a build, the constant does not exist. */
declare const BUILD_COMMIT: string | undefined

export const BUILD = {
  version: manifest.version,
  commit: typeof BUILD_COMMIT === 'string' ? BUILD_COMMIT : 'unknown',
}
