import { internalError, noLogoHere, noPaymentHere, unavailable } from '../../errors.ts'
import { operation } from '../../platform/http/operation.ts'
import { matchesEtag } from '../../platform/http/request-headers.ts'
import type { FindLogo } from '../tenants/logo.ts'
import type { Brand } from '../tenants/merchants.ts'
import { type FindCheckout, ORDER_PATH } from './find-checkout.ts'

/**
 * The URL of the logo, relative to the pay page; undefined without a logo. It contains a part of the hash, so that a
 * page never shows an earlier logo from a cache.
 */
export const logoAddress = (orderId: string, { logo }: Pick<Brand, 'logo'>) =>
  logo === null ? undefined : `${orderId}/logo.png?v=${logo.slice(0, 8)}`

const MAX_AGE_SECONDS = 86_400

/** The logo has the order's address, because that reveals no merchant and identifies one without a further index. */
export const payLogo = operation({
  name: 'payLogo',
  path: `${ORDER_PATH}/logo.png`,
  tag: 'Customer',
  summary: 'Get the merchant’s logo',
  description: 'The logo of the pay page as PNG. 404 if the merchant has none.',
  access: 'anyone',
  errors: [noPaymentHere(), noLogoHere(), internalError(), unavailable()],
  response: {
    description: 'The image.',
    type: 'image/png',
    headers: ['cache-control', 'etag'],
    isCacheable: true,
    toBody: (image: Buffer) => image,
  },
  handle: ({ findCheckout, findLogo }: { findCheckout: FindCheckout; findLogo: FindLogo }) => {
    return async ({ params, headers }, reply) => {
      const { mid, brand } = await findCheckout(params.orderId)
      if (brand.logo === null) throw noLogoHere()
      const etag = `"${brand.logo}"`
      const isCurrent = matchesEtag(headers['if-none-match'], etag)
      const png = isCurrent ? undefined : await findLogo(mid, brand.logo)
      if (!isCurrent && !png) throw noLogoHere()
      reply.headers({
        'cache-control': `public, max-age=${MAX_AGE_SECONDS}`,
        etag,
        'x-content-type-options': 'nosniff',
      })
      return png === undefined ? reply.code(304).send() : reply.type('image/png').send(png)
    }
  },
})
