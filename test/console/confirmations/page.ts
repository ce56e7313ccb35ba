import { pageName } from '../../../src/operator/console/view.ts'
import type { ConsolePage } from '../../support/console.ts'

/** What a confirmation page shows: the amount in large type and in the button, the notes, and the fields by label. */
export type Shown = { amount: string; notes: string[]; fields: Record<string, string> }

/** The address of a change's form. */
export const pathOf = (name: string) => `/${pageName({ name })}`

const textOf = (markup = '') =>
  markup
    .replace(/<[^>]+>/g, '')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
    .replace(/\s+/g, ' ')
    .trim()

/** Reads a confirmation page as a person does. */
export function read({ body }: ConsolePage): Shown {
  const card = /<section class="card">([\s\S]*?)<\/section>/.exec(body)?.[1] ?? ''
  const amount = textOf(/<p class="amount">([\s\S]*?)<\/p>/.exec(card)?.[1])
  const button = textOf(/<form class="change"[\s\S]*<button>([\s\S]*?)<\/button>/.exec(card)?.[1])
  if (!button.endsWith(amount)) throw new Error(`the button says ${button}, and the page ${amount}`)
  const fields = card.matchAll(/<dt>([\s\S]*?)<\/dt><dd>([\s\S]*?)<\/dd>/g)
  return {
    amount,
    notes: [...card.matchAll(/<p class="note">([\s\S]*?)<\/p>/g)].map(([, note]) => textOf(note)),
    fields: Object.fromEntries([...fields].map(([, label, value]) => [textOf(label), textOf(value)])),
  }
}

/** Returns the identifier of the audit row that the confirmation creates. */
export const nonceOf = ({ fields }: ConsolePage): string => JSON.parse(fields.change ?? '{}').nonce

/** Returns the error on a page. */
export const alertOf = ({ body }: ConsolePage) => textOf(/role="alert">([\s\S]*?)<\/div>/.exec(body)?.[1])
