import { expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { GROUPS } from '../../src/operator/commands/catalog.ts'
import { change } from '../../src/operator/commands/command.ts'
import { flag, oneOf, optional, toggle } from '../../src/operator/commands/field.ts'
import { MID } from '../../src/operator/commands/fields.ts'
import { document } from '../../src/operator/commands/result.ts'
import { createHelp } from '../../src/operator/terminal/help.ts'
import { parseArguments } from '../../src/operator/terminal/parse.ts'
import { identifier, text } from '../../src/platform/fields.ts'
import { createTestConsole, newOperatorKey } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'
import { unique } from '../support/tenants.ts'

/** A command that no other file names. */
const add = change('partners enrol', 'Enrol a partner of a merchant', {
  title: 'Enrol partner',
  fields: {
    which: oneOf([{ pid: flag(identifier, 'PID', 'Identifier', 'assigned by you') }, { mid: MID }]),
    name: flag(text(99), 'NAME', 'Name of the partner', 'as on its letterhead'),
    loud: optional(toggle('Print the name in capitals')),
  },
  async run({ which: { pid = 'P0' }, name, loud }, { client }) {
    await client.query(`insert into partners (pid, name, created_at) values ($1, $2, now())`, [pid, name])
    const { rows } = await client.query<{ partners: number }>('select count(*) as partners from partners')
    const shown = loud ? name.toUpperCase() : name
    return { data: document({ pid }, `${shown} enrolled.`), figures: { partners: rows[0]?.partners ?? 0 } }
  },
})

it('one entry in one file adds a command with its usage, help, flags, form, confirmation and audit', async () => {
  const { url, db } = await createTestDatabase()
  // As console-grants.sql does for the tables of the console's commands.
  await db.query('grant insert on partners to upi_console')
  const groups = { ...GROUPS, Partners: [add] }
  const site = await createTestConsole({ databaseUrl: url }, undefined, {}, LIMITS, groups)
  const key = await newOperatorKey(db)
  const help = createHelp(groups)
  expect(help.long(add, [])).toMatch(
    / ops partners enrol \(--pid PID \| --mid MID\) --name NAME \[--loud\]\n.* --pid PID +Identifier \(assigned by you\)\n/s,
  )
  expect(help.long(undefined, [])).toContain('  partners enrol             Enrol a partner of a merchant')
  const pid = unique('P')
  const given = parseArguments(add, ['--pid', pid, '--name', 'Acme', '--loud'])
  expect(given.values).toEqual({ pid, name: 'Acme', loud: true })
  expect(() => add.prepare({ pid, mid: 'M1' })).toThrow('give either --pid or --mid; --name is required')

  const form = await site.get('/partners-enrol', key)
  expect(form.body).toMatch(/<label>Name of the partner <input [^>]*name="name"[^>]*> <small>as on its letterhead</)
  expect(form.body).toMatch(/<input type="checkbox" name="loud" value="on"> Print the name in capitals</)
  const invalid = await site.post('/partners-enrol', { pid }, key)
  expect([invalid.status, invalid.body]).toEqual([400, expect.stringContaining('“Name of the partner” is required')])
  const confirmation = await site.post('/partners-enrol', { pid, name: 'Acme', loud: 'on' }, key)
  expect(confirmation.body).toMatch(/<dt>name of the partner<\/dt><dd>Acme.*<dt>partners<\/dt><dd>1</is)
  expect((await db.query('select from partners')).rowCount).toBe(0)
  const done = await site.post('/partners-enrol', confirmation.fields, key)
  expect([done.status, (await db.query('select pid, name from partners')).rows]).toEqual([303, [{ pid, name: 'Acme' }]])
  const { rows } = await db.query(
    'select command, arguments, outcome from audit_commands join audit_outcomes using (audit_id)',
  )
  expect(rows).toEqual([{ command: 'partners enrol', arguments: { pid, name: 'Acme', loud: true }, outcome: 'done' }])
})
