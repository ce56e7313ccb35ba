import { createPartners } from '../../gateway/tenants/partners.ts'
import { NewPartner } from '../../gateway/tenants/schema.ts'
import { change, read } from './command.ts'
import { CommandError } from './errors.ts'
import { flag } from './field.ts'
import { MID, PID } from './fields.ts'
import { document, record, table } from './result.ts'

const SUMMARIES = {
  link: 'Give a partner read access to a merchant',
  unlink: 'Revoke a partner’s access to a merchant',
}

export const partnerCommands = [
  change('partners add', 'Add a partner', {
    fields: { pid: PID, name: flag(NewPartner.shape.name, 'NAME', 'Name of the partner') },
    async run(partner, { client, now }) {
      const added = await createPartners(client).add(partner, now)
      if (added === undefined) throw new CommandError(`pid ${partner.pid} already exists: choose another`)
      return record(added)
    },
  }),

  read('partners list', 'List partners and their merchants', {
    title: 'Partners',
    run: async (_, { db }) => table('pid, name, createdAt, mids', await createPartners(db).list(), 'No partners.'),
  }),

  ...(['link', 'unlink'] as const).map((verb) =>
    change(`partners ${verb}`, SUMMARIES[verb], {
      fields: { pid: PID, mid: MID },
      async run({ pid, mid }, { client }) {
        const outcome = await createPartners(client)[verb](pid, mid)
        if (outcome === 'unknown pid') throw new CommandError(`pid ${pid} does not exist: see ops partners list`)
        if (outcome === 'unknown mid') throw new CommandError(`mid ${mid} does not exist: see ops merchants list`)
        const linked = verb === 'link'
        const state = `${outcome === 'unchanged' ? 'already' : 'now'} ${linked ? 'linked to' : 'not linked to'}`
        return document({ pid, mid, linked }, `Partner ${pid} is ${state} merchant ${mid}.`)
      },
    }),
  ),
]
