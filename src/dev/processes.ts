import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const STATE = 0
const START_TIME = 19

/**
 * A text that tells this run of process `pid` from any other process that ever had the number; undefined when it has
 * ended. A zombie counts as ended: in a container without init nobody reaps it, so it would seem to live for ever.
 */
export function processStamp(pid: number): string | undefined {
  if (process.platform !== 'linux') return isAlive(pid) ? 'alive' : undefined
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the program's name, which may hold blanks and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[STATE] === 'Z' || fields[STATE] === 'X' ? undefined : fields[START_TIME]
  } catch {
    return undefined
  }
}

/** The words that process `pid` was started with, in one text; empty when it has ended or may not be seen. */
export function commandLine(pid: number): string {
  if (process.platform !== 'linux') {
    return spawnSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout ?? ''
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
