import { loadEnvFile } from 'node:process'

/** Reads `.env` of the checkout into the environment, as compose does: a variable that is set already wins. */
export function readEnvFile(): void {
  try {
    loadEnvFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
