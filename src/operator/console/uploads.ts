import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { hashed } from '../../platform/csv/csv.ts'
import { CommandError } from '../commands/errors.ts'

/** An uploaded file. `name` is the name on the operator's machine, and `sha256` is in hex. */
export type UploadedFile = { name: string; bytes: number; sha256: string }

/** An uploaded file as it is stored. */
type Upload = UploadedFile & { file: FileHandle }

/**
 * Stores one uploaded file per operator for `ms`, or until the operator uploads another. The files have no name on
 * disk, so the kernel removes them when the process ends, even if it is killed.
 */
export function createUploads(ms: number) {
  const dispose = ({ file }: Upload) => void file.close()
  const uploads = new LRUCache<string, Upload>({ ttl: ms, ttlAutopurge: true, dispose })
  return {
    /** Stores the file of a form. Throws a CommandError, and stores nothing, if the form is invalid. */
    async receive(
      request: FastifyRequest,
      operator: string,
    ): Promise<{ fields: Record<string, unknown>; uploaded: UploadedFile }> {
      let file: FileHandle | undefined
      const fields: Record<string, unknown> = Object.create(null)
      let upload: Upload | undefined
      try {
        for await (const part of request.parts()) {
          if (part.type === 'field') {
            if (part.fieldname in fields) throw new CommandError(SENT_TWICE)
            fields[part.fieldname] = part.value
            continue
          }
          const hash = createHash('sha256')
          file = await openUnnamed()
          await writeFile(file, hashed(part.file, hash))
          upload = { file, name: part.filename, bytes: part.file.bytesRead, sha256: hash.digest('hex') }
        }
        // If the operator has chosen no file, the browser sends one without a name.
        if (!upload?.name) throw new Error('no file')
        uploads.set(operator, upload)
        const { file: _, ...uploaded } = upload
        return { fields, uploaded }
      } catch (error) {
        await file?.close()
        // Errors of the file system have a system call. All others are in the form.
        const isOwn = error instanceof CommandError || (error as NodeJS.ErrnoException).syscall !== undefined
        throw isOwn ? error : new CommandError(INVALID)
      }
    },

    /** Opens the operator's file as standard input. Throws a CommandError if no file with this hash is stored. */
    async open(operator: string, sha256: string) {
      const upload = uploads.get(operator)
      if (upload?.sha256 !== sha256) throw new CommandError(NOT_STORED)
      // Opens the file again, so that a running import reads all of it although the operator uploads another.
      const file = await open(`/dev/fd/${upload.file.fd}`)
      return { stream: file.createReadStream({ start: 0 }), name: upload.name }
    },
  }
}

async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `upi-console-${randomUUID()}`)
  const file = await open(path, 'wx+', 0o600)
  await unlink(path)
  return file
}

export const SENT_TWICE = 'A field was sent twice. Open the form again.'
const NOT_STORED = 'The uploaded file is not stored any more, so nothing was changed. Upload it again.'
const INVALID =
  'Choose one file of at most 64 MB: nothing was stored. Import a larger file with the same command on the command line.'
