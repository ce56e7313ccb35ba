import { createHash } from 'node:crypto'
import { createWriteStream, rmSync } from 'node:fs'
import { mkdtemp, open, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { hashed } from '../../platform/csv/csv.ts'
import { CommandError } from '../cli/errors.ts'

/** An uploaded file in `folder`. `name` is the name on the operator's machine, and `sha256` is in hex. */
export type Upload = { folder: string; name: string; bytes: number; sha256: string }

/**
 * Stores one uploaded file per operator for `ms`, or until the operator uploads another. Each file has a private folder
 * of its own, and its name there is its SHA-256, because the name that the browser sends is untrusted.
 */
export function createUploads(ms: number) {
  const remove = ({ folder }: Pick<Upload, 'folder'>) => rmSync(folder, { recursive: true, force: true })
  const uploads = new LRUCache<string, Upload>({ ttl: ms, ttlAutopurge: true, dispose: remove })
  return {
    /** Stores the file of a form. Throws a CommandError, and stores nothing, if the form is invalid. */
    async receive(request: FastifyRequest, operator: string) {
      const folder = await mkdtemp(join(tmpdir(), 'upi-console-'))
      const fields: Record<string, unknown> = {}
      let upload: Upload | undefined
      try {
        for await (const part of request.parts()) {
          if (part.type === 'field') {
            fields[part.fieldname] = part.value
            continue
          }
          const [received, hash] = [createWriteStream(join(folder, 'received')), createHash('sha256')]
          await pipeline(hashed(part.file, hash), received)
          upload = { folder, name: part.filename, bytes: received.bytesWritten, sha256: hash.digest('hex') }
          await rename(received.path, join(folder, upload.sha256))
        }
        // If the operator has chosen no file, the browser sends one without a name.
        if (!upload?.name) throw new Error('no file')
        uploads.set(operator, upload)
        return { fields, upload }
      } catch (error) {
        remove({ folder })
        // Errors of the file system have a system call. All others are in the form.
        throw (error as NodeJS.ErrnoException).syscall === undefined ? new CommandError(INVALID) : error
      }
    },

    /** Opens the operator's file as standard input. Throws a CommandError if no file with this hash is stored. */
    async open(operator: string, sha256: string) {
      const upload = uploads.get(operator)
      const file = upload && (await open(join(upload.folder, sha256)).catch(() => undefined))
      if (!file) throw new CommandError(NOT_STORED)
      return Object.assign(file.createReadStream(), { fileName: upload.name })
    },

    removeAll: async () => uploads.clear(),
  }
}

const NOT_STORED = 'The uploaded file is not stored any more, so nothing was changed. Upload it again.'
const INVALID =
  'Choose one file of at most 64 MB: nothing was stored. Import a larger file with the same command on the command line.'
