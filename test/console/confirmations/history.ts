import { expect } from 'vitest'
import type { Command } from '../../../src/operator/commands/command.ts'
import { flagsIn } from '../../../src/operator/commands/field.ts'
import { inWords } from '../../../src/operator/console/render.ts'
import type { FakeCashfree } from '../../support/cashfree-bank.ts'
import type { ConsolePage, FormFields, TestConsole } from '../../support/console.ts'
import type { Key, TestService } from '../../support/service.ts'
import { alertOf, nonceOf, pathOf, read, type Shown } from './page.ts'
import { type Difference, differenceOf, newestImports, type Place, readTables } from './tables.ts'

/** Returns one of the choices of the history. */
export type Pick = <T>(choices: readonly T[]) => T

/** What all histories share. The operators `asha` and `meera` confirm, and `ravi` makes other changes. */
export type World = {
  service: TestService
  bank: FakeCashfree
  site: TestConsole
  operators: Record<'asha' | 'meera' | 'ravi', Key>
  pick: Pick
}

/** The figures of a confirmation page, without the fields that the operator has sent; a null field is not shown. */
export type Figures = { amount?: string; notes?: string[]; fields: Record<string, string | null> }

export type Confirmed = { shown: Shown; person: string }

/** A record that a change is about, in a state in which the change succeeds. */
export type Subject = {
  mid: string
  /** The fields of the form. */
  fields: FormFields
  /** What another operator, the merchant, the acquirer and the bank may do. */
  acts: Record<string, () => Promise<unknown>>
  /** Returns what the page must show, from the tables; undefined if the change is rejected. */
  figures: () => Promise<Figures | undefined>
  /** Expects that the tables have got exactly what the page has shown. */
  expectStored: (confirmed: Confirmed, difference: Difference) => void
  /** The outcome in the audit. Default: done. */
  outcome?: (shown: Shown) => string
}

/** `share` is the number of the change's histories. */
export type Generator = { share: number; create: (world: World) => Promise<Subject> }

/** One history. Numbers select among choices. `acts` are the acts before each of the confirmations. */
export type History = { acts: number[][]; isConcurrent: boolean }

/** Makes a change in the console, as an operator does who confirms whatever the page shows. */
export async function makeChange({ site, operators }: World, name: string, fields: FormFields): Promise<ConsolePage> {
  const shown = await site.post(pathOf(name), fields, operators.ravi)
  return shown.status === 200 ? site.post(pathOf(name), shown.fields, operators.ravi) : shown
}

/** Plays a history, and returns the statuses of its confirmations. */
export async function play(
  world: World,
  command: Command,
  create: Generator['create'],
  { acts, isConcurrent }: History,
): Promise<number[]> {
  const { db } = world.service
  const newest = await newestImports(db)
  const subject = await create(world)
  const place = { mid: subject.mid, ...newest }
  const people = isConcurrent ? (['asha', 'meera'] as const) : (['asha'] as const)
  let pages = await Promise.all(people.map((person) => openForm(world, command, subject, person)))
  const said: string[] = []
  const statuses: number[] = []
  try {
    for (const some of acts) {
      for (const number of some) {
        const names = Object.keys(subject.acts)
        const name = names[number % names.length] as string
        said.push(name)
        await subject.acts[name]?.()
      }
      const confirmed = await confirm(world, { command, subject, place }, pages)
      statuses.push(...confirmed.map(({ status }) => status))
      said.push(`confirmed: ${confirmed.map(({ status }) => status).join(' and ')}`)
      pages = confirmed.filter(({ status }) => status === 409)
      if (pages.length === 0) break
    }
  } catch (difference) {
    throw new Error(`${command.name}: ${said.join('; ')}`, { cause: difference })
  }
  return statuses
}

/** A page with the form that `person` confirms. */
type Shows = ConsolePage & { person: 'asha' | 'meera' }

async function openForm({ site, operators }: World, command: Command, subject: Subject, person: Shows['person']) {
  const key = operators[person]
  const named = Object.entries(subject.fields).filter(([flag]) => flagsIn(command.fields)[flag]?.record)
  const form = await site.get(`${pathOf(command.name)}?${new URLSearchParams(named as [string, string][])}`, key)
  expect(form.status).toBe(200)
  const page = await site.post(pathOf(command.name), subject.fields, key)
  expect(page.status, alertOf(page)).toBe(200)
  expectShown(command, subject, read(page), await subject.figures())
  return { ...page, person }
}

type Case = { command: Command; subject: Subject; place: Place }

/** Confirms the pages concurrently, and compares each response and the audit with the tables. */
async function confirm({ service: { db }, site, operators }: World, about: Case, pages: Shows[]): Promise<Shows[]> {
  const { command, subject, place } = about
  const [before, figures] = [await readTables(db, place), await subject.figures()]
  const responses = await Promise.all(
    pages.map(async ({ fields, person }) => ({
      ...(await site.post(pathOf(command.name), fields, operators[person])),
      person,
    })),
  )
  const difference = differenceOf(before, await readTables(db, place))
  const confirmed = pages
    .map((page, index) => ({ shown: read(page), person: page.person, response: responses[index] as Shows, page }))
    .filter(({ response }) => response.status === 303)
  if (confirmed.length === 0) expect(difference, 'nothing is stored').toEqual({})
  for (const { shown, person } of confirmed) {
    expectShown(command, subject, shown, figures)
    subject.expectStored({ shown, person }, difference)
  }
  const now = await subject.figures()
  // The second of two equal confirmations is right only if the first one has left the figures as they were.
  if (confirmed.length > 1) for (const { shown } of confirmed) expectShown(command, subject, shown, now)
  for (const [index, response] of responses.entries()) {
    const page = pages[index] as Shows
    expect([303, 400, 409]).toContain(response.status)
    if (response.status === 409) {
      expectShown(command, subject, read(response), now)
      expect(read(response), 'a form that comes again has new figures').not.toEqual(read(page))
    }
    if (response.status === 400) expect(now, alertOf(response)).toBeUndefined()
    const outcome = response.status === 303 ? (subject.outcome?.(read(page)) ?? 'done') : 'failed'
    await expectAudited(db, nonceOf(page), { person: page.person, command: command.name, outcome })
  }
  await expectNoRefundAbovePayment(db, place.mid)
  return responses
}

/** Expects that a page shows the fields that the operator has sent, the figures, and nothing else. */
function expectShown(command: Command, subject: Subject, shown: Shown, figures: Figures | undefined): void {
  const flags = flagsIn(command.fields)
  const { file, ...values } = subject.fields
  const given = Object.entries(values).flatMap(([flag, value]) =>
    typeof value === 'string' &&
    value !== '' &&
    !(flag === 'amount' && figures?.amount) &&
    !(inWords(flag) in (figures?.fields ?? {}))
      ? [[inWords(flags[flag]?.label ?? flag), value === 'on' ? 'true' : value]]
      : [],
  )
  const { 'SHA-256': sha256, size, file: name, ...others } = shown.fields
  expect([name, sha256 === undefined, size === undefined]).toEqual(
    file instanceof File ? [file.name, false, false] : [undefined, true, true],
  )
  const fields = Object.entries({ ...Object.fromEntries(given), ...figures?.fields }).filter(
    ([, text]) => text !== null,
  )
  expect({ amount: shown.amount, notes: shown.notes, fields: others }, 'the page and the tables').toEqual({
    amount: figures?.amount ?? '',
    notes: figures?.notes ?? [],
    fields: Object.fromEntries(fields),
  })
}

const AUDITED = `
  select c.person, c.command, o.outcome
    from audit_commands c
    left join audit_outcomes o using (audit_id)
   where c.audit_id = $1`

async function expectAudited(db: TestService['db'], nonce: string, row: Record<string, string>): Promise<void> {
  const { rows } = await db.query(AUDITED, [nonce])
  expect(rows, 'the audit').toEqual([row])
}

const ABOVE = `
  select p.utr, p.amount_paise as paid, sum(r.amount_paise)::bigint as refunded
    from payments p
    join refunds r on r.mid = p.mid and r.utr = p.utr and r.status <> 'FAIL'
    left join refund_returns b on b.mid = r.mid and b.our_refund_id = r.our_refund_id
   where p.mid = $1 and b.mid is null
   group by p.utr, p.amount_paise
  having sum(r.amount_paise) > p.amount_paise`

async function expectNoRefundAbovePayment(db: TestService['db'], mid: string): Promise<void> {
  expect((await db.query(ABOVE, [mid])).rows, 'payments of which more was refunded than was paid').toEqual([])
}
