import { expect } from 'vitest'
import { runOps } from './ops.ts'
import { unique } from './service.ts'

export type Payout = { day: string; reference: string; rupees: number }

let lastNumber = 45_345_678
export const newReference = () => `AXNPN2026${++lastNumber}`

/** Returns the commands of an operator who imports statements of a bank account. */
export function bankOn(url: () => string) {
  const ops = (args: string[], input = '') => runOps(url(), args, input)

  async function must(args: string[], input = '') {
    const { code, stdout, stderr } = await ops([...args, '--json'], input)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return JSON.parse(stdout)
  }

  return {
    ops,
    must,

    layout: (name: string, ...columns: string[]) =>
      must([
        ...['statements', 'layout', 'add', '--name', name, '--date', 'dd/mm/yyyy'],
        ...columns.flatMap((column) => ['--column', column]),
      ]),

    addPayout: (mid: string, { day, reference, rupees }: Payout) =>
      must(
        ['settlements', 'import', '-'],
        `mid,amount,utr,bank_reference_number,status,initiation_date\n${mid},${rupees},${unique('U').replace(/\W/g, '')},${reference},SUCCESS,${day} 09:00:00\n`,
      ),

    /** Returns the results for the payouts to the merchant in August 2026. */
    async arrivals(mid: string): Promise<{ arrival: string; statement: string | null; credited: string | null }[]> {
      const { payouts } = await must(['reconcile', 'payouts', '--month', '2026-08', '--mid', mid])
      return payouts.map(({ arrival, statement, credited }: Record<string, string>) => ({
        arrival,
        statement,
        credited,
      }))
    },
  }
}

export const importArgs = (mid: string, layout: string, from = '2026-08-01', to = '2026-08-31') => [
  ...['statements', 'import', '-', '--layout', layout, '--mid', mid, '--from', from, '--to', to],
]
