import { join } from 'node:path'
import { ROOT, run, TYPESCRIPT } from '../../support/processes.ts'
import { progress } from '../../support/workspace.ts'
import type { Section } from '../bench.ts'
import { alternate } from '../statistics.ts'

const ROUNDS = 5
const PER_SECOND = 1_000
const PROGRAM = join(ROOT, 'test/bench/contenders/qr.ts')

/** QR codes drawn by one core. */
export const qr: Section = async () => async () => {
  const { drawn } = await alternate(['drawn'], ROUNDS, async (_name, round) => {
    progress(`QR: round ${round} of ${ROUNDS}`)
    const output = await run(process.execPath, [...TYPESCRIPT, PROGRAM])
    return JSON.parse(output) as { png: number; svg: number; linkLength: number }
  })
  const png = drawn.map((result) => result.png)
  const svg = drawn.map((result) => result.svg)
  const unit = '/s'
  return [
    {
      title: `QR codes of a link of ${drawn[0]?.linkLength} characters, per second of one core`,
      series: [
        { contender: 'PNG', unit, samples: png },
        { contender: 'SVG', unit, samples: svg },
      ],
      figures: [
        { what: 'QR as PNG', samples: png, unit, atLeast: PER_SECOND },
        { what: 'QR as SVG', samples: svg, unit, atLeast: PER_SECOND },
      ],
    },
  ]
}
