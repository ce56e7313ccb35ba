import { AcquirerError } from '../../errors.ts'
import { VPA } from '../../platform/fields.ts'
import { bankAmount } from '../../platform/money.ts'
import type { Intent } from '../payments/intent.ts'
import { UPI_PREFIX } from '../payments/upi-links.ts'

/**
 * Printable ASCII without space, `"` and `#`: `"` would end the link's attribute in HTML, and `#` starts a fragment.
 */
const QUERY = /^[!\x24-\x7e]+$/
/**
 * Matches a parameter name that contains `%`, because an app may decode such a name to a second `pa`. A trigger on
 * acquirer_intents also rejects such a name.
 */
const ENCODED_NAME = /(^|&)[^=&]*%/
const LINK_LIMIT_CHARACTERS = 2_048

type UncheckedLink = {
  link: string
  requestId: string | undefined
  isCurrencyOptional?: boolean
  isSandbox?: boolean | undefined
}

/**
 * Reads `tr` and payee of a link that an acquirer created for an intent. Other parameters are allowed. The link is
 * never changed, because the link may be signed. `payees` are the merchant's accepted payees, see `isAccepted`. By the
 * UPI specification a link without `cu` is in INR, which is accepted if `isCurrencyOptional`. A sandbox may return the
 * https address of a page instead. Throws an AcquirerError with the `requestId` for a link that must not be shown to a
 * customer.
 */
export function readPaymentLink(
  { link, requestId, isCurrencyOptional, isSandbox }: UncheckedLink,
  { orderId, amount, payee }: Pick<Intent, 'orderId' | 'amount' | 'payee'>,
  payees: readonly string[],
): { reference: string; payeeVpa: string } {
  if (isSandbox && /^https:\/\/[!-~]+$/.test(link)) return { reference: orderId, payeeVpa: payee.vpa }
  const query = link.slice(UPI_PREFIX.length)
  const isLink =
    link.startsWith(UPI_PREFIX) &&
    link.length <= LINK_LIMIT_CHARACTERS &&
    QUERY.test(query) &&
    !ENCODED_NAME.test(query)
  const parameters = isLink ? [...new URLSearchParams(query)] : []
  // Ignores the case of parameter names, because an app may read PA as pa.
  const valuesOf = (name: string) => parameters.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value)
  const only = (name: string) => {
    const [value = '', ...others] = valuesOf(name)
    return others.length === 0 ? value : ''
  }
  const isAmount = (text: string) => bankAmount.safeParse(text).data === amount
  const [payeeVpa, reference] = [only('pa'), only('tr')]
  const isOfOrder =
    isAmount(only('am')) &&
    // Rejects a `mam` (minimum amount) below the amount, because it would let the customer pay less.
    valuesOf('mam').every(isAmount) &&
    (only('cu') === 'INR' || (isCurrencyOptional && valuesOf('cu').length === 0)) &&
    /^[A-Za-z0-9]{1,35}$/.test(reference)
  if (!isOfOrder || !VPA.test(payeeVpa)) {
    throw new AcquirerError('bad answer', 'the acquirer created a link that does not match the order', {
      requestId,
      orderId,
    })
  }
  if (!payees.some((accepted) => isAccepted(payeeVpa, accepted))) {
    throw new AcquirerError(
      'bad answer',
      'the acquirer created a link to a payee that the merchant does not accept: if the payee is correct, add it with ops merchants update --payee',
      { requestId, orderId, payee: payeeVpa, accepted: payees },
    )
  }
  return { reference, payeeVpa }
}

/** Whether a UPI address matches `accepted`, ignoring case. A `*` before the `@` of `accepted` matches any text. */
function isAccepted(vpa: string, accepted: string): boolean {
  const [given, [prefix = '', handle]] = [vpa.toLowerCase(), accepted.toLowerCase().split('*')]
  if (handle === undefined) return given === prefix
  return given.startsWith(prefix) && given.slice(given.indexOf('@')) === handle
}
