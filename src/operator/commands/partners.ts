import { createPartners } from '../../gateway/tenants/partners.ts'
import { NewPartner, OneLink } from '../../gateway/tenants/schema.ts'
import { atomicCommand, command } from './command.ts'
import { CommandError } from './errors.ts'
import { document, record, table } from './result.ts'

export const partnerCommands = [
  atomicCommand('partners add', 'Add a partner', {
    usage: '--pid PID --name NAME',
    schema: NewPartner,
    async run(partner, { client, now }) {
      const added = await createPartners(client).add(partner, now)
      if (added === undefined) throw new CommandError(`pid ${partner.pid} already exists: choose another`)
      return record(added)
    },
  }),

  command('partners list', 'List partners and their merchants', {
    console: 'read',
    async run(_, { db }) {
      return table('pid, name, createdAt, mids', await createPartners(db).list(), 'No partners.')
    },
  }),

  ...(['link', 'unlink'] as const).map((verb) =>
    atomicCommand(
      `partners ${verb}`,
      verb === 'link' ? 'Give a partner read access to a merchant' : 'Revoke a partner’s access to a merchant',
      {
        usage: '--pid PID --mid MID',
        schema: OneLink,
        async run({ pid, mid }, { client }) {
          const outcome = await createPartners(client)[verb](pid, mid)
          if (outcome === 'unknown pid') throw new CommandError(`pid ${pid} does not exist: see ops partners list`)
          if (outcome === 'unknown mid') throw new CommandError(`mid ${mid} does not exist: see ops merchants list`)
          const linked = verb === 'link'
          const state = `${outcome === 'unchanged' ? 'already' : 'now'} ${linked ? 'linked to' : 'not linked to'}`
          return document({ pid, mid, linked }, `Partner ${pid} is ${state} merchant ${mid}.`)
        },
      },
    ),
  ),
]
