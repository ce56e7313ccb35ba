import * as z from 'zod'
import { createPartners, type LinkOutcome } from '../tenants/partners.ts'
import { NewPartner, OneLink } from '../tenants/schema.ts'
import { changingCommand, command } from './command.ts'
import { CommandFault } from './faults.ts'
import { type Output, record, table } from './output.ts'

type Link = z.output<typeof OneLink>

export const partnerCommands = [
  changingCommand({
    name: 'partners add',
    usage: '--pid P1 --name "Acme"',
    schema: NewPartner,
    run: (partner, { change, now }) =>
      change(async (client) => {
        const added = await createPartners(client).add(partner, now)
        if (added === undefined) throw new CommandFault(`pid ${partner.pid} is taken`)
        return { json: added, text: record(added) }
      }),
  }),

  command({
    name: 'partners list',
    usage: '',
    schema: z.object({}),
    async run(_, { db }) {
      const partners = await createPartners(db).list()
      return { json: partners, text: table(['pid', 'name', 'createdAt', 'mids'], partners, 'no partners') }
    },
  }),

  changingCommand({
    name: 'partners link',
    usage: '--pid P1 --mid M1',
    schema: OneLink,
    run: ({ pid, mid }, { change }) =>
      change(async (client) => showLink({ pid, mid }, true, await createPartners(client).link(pid, mid))),
  }),

  changingCommand({
    name: 'partners unlink',
    usage: '--pid P1 --mid M1',
    schema: OneLink,
    run: ({ pid, mid }, { change }) =>
      change(async (client) => showLink({ pid, mid }, false, await createPartners(client).unlink(pid, mid))),
  }),
]

function showLink({ pid, mid }: Link, linked: boolean, outcome: LinkOutcome): Output {
  if (outcome === 'unknown pid') throw new CommandFault(`pid ${pid} is unknown`)
  if (outcome === 'unknown mid') throw new CommandFault(`mid ${mid} is unknown`)
  const state = linked ? 'linked to' : 'not linked to'
  return {
    json: { pid, mid, linked },
    text: `${pid} is ${outcome === 'unchanged' ? 'already' : 'now'} ${state} ${mid}`,
  }
}
