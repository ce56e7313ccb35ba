import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Returns the contents of the files below `folder` that a process has open. Uploaded files have no name there. */
export function storedUploads(folder: string, pid = process.pid): Buffer[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    const path = `/proc/${pid}/fd/${fd}`
    try {
      return readlinkSync(path).startsWith(folder) ? [readFileSync(path)] : []
    } catch (error) {
      // The file was closed since the folder was listed.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  })
}
