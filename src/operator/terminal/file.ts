import { open } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import type { OpenedFile } from '../commands/command.ts'
import { CommandError } from '../commands/errors.ts'
import type { Terminal } from './print.ts'

/** Opens the file at a path, or standard input for `-`. */
export async function openFile(path: string, { stdin }: Terminal): Promise<OpenedFile> {
  if (path === '-') return { stream: stdin, name: path }
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(
      error.code === 'ENOENT' ? `file ${resolve(path)} does not exist` : `${path} cannot be read: ${error.code}`,
    )
  })
  if (!(await file.stat()).isDirectory()) return { stream: file.createReadStream(), name: basename(path) }
  await file.close()
  throw new CommandError(`${path} is a directory: give a file`)
}
