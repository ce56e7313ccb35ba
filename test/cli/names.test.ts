import { describe, expect, it } from 'vitest'
import { runOps } from '../support/ops.ts'
import { startService, unique } from '../support/service.ts'

const service = await startService()
const ops = (args: string[], settings = {}) => runOps(service.databaseUrl, args, '', settings)

const RULE = 'must not contain characters that are invisible or change the writing direction'

const NAMED: [string, (name: string) => string[]][] = [
  ['a merchant', (name) => ['merchants', 'add', '--name', name, '--vpa', 'shop@examplebank', '--mcc', '5814']],
  ['a partner', (name) => ['partners', 'add', '--pid', unique('P'), '--name', name]],
  ['the operator of a key', (name) => ['keys', 'create', '--operator', name, '--rights', 'read']],
  ['the operator in the audit', (name) => ['merchants', 'disable', '--mid', unique('M'), '--by', name]],
]

describe.each(NAMED)('the name of %s', (_, argsFor) => {
  it.each([
    ['a right-to-left override', 'asha\u202e'],
    ['an isolate', '\u2066asha'],
    ['a left-to-right mark', 'as\u200eha'],
    ['a zero-width space', 'as\u200bha'],
    ['a tag', 'asha\u{e0041}'],
  ])('is rejected with %s', async (_name, name) => {
    const { code, stderr } = await ops(argsFor(name))
    expect([code, stderr.split('\n')[0]]).toEqual([2, expect.stringMatching(new RegExp(`^ops: --[a-z]+ ${RULE}$`))])
  })

  it('is accepted with the joiners of Indian names', async () => {
    expect((await ops(argsFor('श्री\u200d क्\u200cष'))).stderr).not.toMatch(/^ops: --/m)
  })
})

it('a command rejects an OPS_BY with a tag', async () => {
  const { code, stderr } = await ops(['merchants', 'list'], { OPS_BY: 'asha\u{e0041}' })
  expect([code, stderr]).toEqual([1, expect.stringContaining(`OPS_BY ${RULE}`)])
})
