import { createPartners } from '../../gateway/tenants/partners.ts'
import { NewPartner, OneLink } from '../../gateway/tenants/schema.ts'
import { atomicCommand, command } from './command.ts'
import { document, record, table } from './data.ts'
import { CommandError } from './errors.ts'

export const partnerCommands = [
  atomicCommand('partners add', 'Add a partner, who reads settlements', {
    usage: '--pid P1 --name "Acme"',
    schema: NewPartner,
    async run(partner, { client, now }) {
      const added = await createPartners(client).add(partner, now)
      if (added === undefined) throw new CommandError(`pid ${partner.pid} is taken`)
      return record(added)
    },
  }),

  command('partners list', 'List partners and the merchants of each', {
    async run(_, { db }) {
      return table('pid, name, createdAt, mids', await createPartners(db).list(), 'no partners')
    },
  }),

  ...(['link', 'unlink'] as const).map((verb) =>
    atomicCommand(`partners ${verb}`, `Let a partner ${verb === 'link' ? '' : 'not '}read a merchant’s settlements`, {
      usage: '--pid P1 --mid M1',
      schema: OneLink,
      async run({ pid, mid }, { client }) {
        const outcome = await createPartners(client)[verb](pid, mid)
        if (outcome === 'unknown pid') throw new CommandError(`pid ${pid} is unknown`)
        if (outcome === 'unknown mid') throw new CommandError(`mid ${mid} is unknown`)
        const linked = verb === 'link'
        const state = `${outcome === 'unchanged' ? 'already' : 'now'} ${linked ? 'linked to' : 'not linked to'}`
        return document({ pid, mid, linked }, `${pid} is ${state} ${mid}`)
      },
    }),
  ),
]
