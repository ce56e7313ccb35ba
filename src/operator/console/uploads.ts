import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdtemp, open, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { FastifyRequest } from 'fastify'
import type { Limits } from '../../limits.ts'
import { hashed } from '../../platform/csv/csv.ts'
import { CommandError } from '../cli/errors.ts'
import type { Terminal } from '../cli/output.ts'
import type { PageFields } from './view.ts'

/** An uploaded file. `name` is the name on the operator's machine, and `sha256` is in hex. */
export type Upload = { name: string; bytes: number; sha256: string }

/** The fields and the file of a form. */
export type UploadForm = { fields: PageFields; upload: Upload }

/**
 * Stores one uploaded file per operator, until it is replaced, or for as long as its import can be confirmed. Each file
 * is in a private folder of its own. Its name is its SHA-256, because the name that the browser sends is untrusted.
 */
export function createUploads({ confirmationMs }: Limits['console']) {
  const stored = new Map<string, Upload & { folder: string; expiry: NodeJS.Timeout }>()

  async function remove(operator: string): Promise<void> {
    const { folder, expiry } = stored.get(operator) ?? {}
    stored.delete(operator)
    clearTimeout(expiry)
    if (folder !== undefined) await removeFolder(folder)
  }

  return {
    /** Stores the file of a form. Throws a CommandError, and stores nothing, if the form is invalid. */
    async receive(request: FastifyRequest, operator: string): Promise<UploadForm> {
      const folder = await mkdtemp(join(tmpdir(), 'upi-console-'))
      try {
        const form = await readForm(request, folder)
        await remove(operator)
        const expiry = setTimeout(remove, confirmationMs, operator).unref()
        stored.set(operator, { ...form.upload, folder, expiry })
        return form
      } catch (error) {
        await removeFolder(folder)
        throw error
      }
    },

    /** Opens the operator's file as standard input of a command. Throws a CommandError if the file is not stored. */
    async open(operator: string, sha256: string): Promise<Terminal['stdin']> {
      const upload = stored.get(operator)
      if (upload?.sha256 !== sha256) throw new CommandError(NOT_STORED)
      const file = await open(join(upload.folder, sha256)).catch(() => {
        throw new CommandError(NOT_STORED)
      })
      return Object.assign(file.createReadStream(), { fileName: upload.name })
    },

    /** Removes all files. */
    close: () => Promise.all([...stored.keys()].map(remove)),
  }
}

const removeFolder = (folder: string) => rm(folder, { recursive: true, force: true })

async function readForm(request: FastifyRequest, folder: string): Promise<UploadForm> {
  const fields: Record<string, string[]> = {}
  const received = join(folder, 'received')
  let upload: Upload | undefined
  try {
    for await (const part of request.parts()) {
      if (part.type === 'field') {
        fields[part.fieldname] = [...(fields[part.fieldname] ?? []), String(part.value)]
        continue
      }
      const [hash, file] = [createHash('sha256'), createWriteStream(received)]
      await pipeline(hashed(part.file, hash), file)
      upload = { name: part.filename, bytes: file.bytesWritten, sha256: hash.digest('hex') }
    }
  } catch (error) {
    // An error of the file system, such as a full disk, is not the sender's.
    if ((error as NodeJS.ErrnoException).syscall !== undefined) throw error
    const isTooLarge = (error as NodeJS.ErrnoException).code === 'FST_REQ_FILE_TOO_LARGE'
    throw new CommandError(isTooLarge ? TOO_LARGE : INVALID)
  }
  // A browser sends a file without a name if the operator has chosen none.
  if (!upload?.name) throw new CommandError(INVALID)
  await rename(received, join(folder, upload.sha256))
  return { fields, upload }
}

const NOT_STORED = 'The uploaded file is not stored any more, so nothing was changed. Upload it again.'
const TOO_LARGE = 'The file is larger than 64 MB, so nothing was stored. Import it on the command line.'
const INVALID = 'The form must contain one file. Nothing was stored. Choose the file and send the form again.'
