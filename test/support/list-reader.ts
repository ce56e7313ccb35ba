import { request as httpRequest } from 'node:http'
import type { FormRequest } from './requests.ts'

/** Occurs exactly once per row. Starts without a quote, because frequent quotes slow the search down. */
const ROW_MARK = Buffer.from('UTR":')
const END = ']}'

/**
 * Reads a settlement list to its end without storing it, and returns its number of rows. Rejects if it is cut off.
 * `onBytes` is called for every chunk.
 */
export function readList(
  url: string,
  { path, headers, body }: FormRequest,
  onBytes: () => void = () => undefined,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url + path, { method: 'POST', headers, agent: false }, (response) => {
      let rows = 0
      let tail = Buffer.alloc(0)
      response.on('data', (chunk: Buffer) => {
        onBytes()
        rows += count(Buffer.concat([tail, chunk.subarray(0, ROW_MARK.length - 1)])) + count(chunk)
        tail = Buffer.concat([tail, chunk.subarray(1 - ROW_MARK.length)]).subarray(1 - ROW_MARK.length)
      })
      response.on('end', () => {
        const whole = response.statusCode === 200 && tail.toString().endsWith(END)
        if (whole) resolve(rows)
        else reject(new Error(`The list of ${rows} rows ended with status ${response.statusCode} and the text ${tail}`))
      })
      response.on('error', reject)
    })
    request.on('error', reject).end(body)
  })
}

function count(bytes: Buffer): number {
  let found = 0
  for (let at = bytes.indexOf(ROW_MARK); at >= 0; at = bytes.indexOf(ROW_MARK, at + ROW_MARK.length)) found += 1
  return found
}

/** The values by which a list of `mid` selects the moments from `from` until before `until`, both in ISO 8601. */
export const listValues = (mid: string, from: string, until: string) => ({
  mid,
  from: String(Date.parse(from) / 1000),
  until: String(Date.parse(until) / 1000),
})
