import { expect, it } from 'vitest'
import { preferredLanguage } from '../../src/platform/http/request-headers.ts'

it.each([
  ['hi', 'hi'],
  ['hi-IN', 'hi'],
  ['HI-in;Q=0.9', 'hi'],
  ['hi-Deva-IN', 'hi'],
  ['hi-IN,hi;q=0.9,en-IN;q=0.8,en;q=0.7', 'hi'],
  ['en-IN,en;q=0.9,hi;q=0.8', 'en'],
  // The reader knows none of the page's languages except Hindi.
  ['mr-IN,mr;q=0.9,hi;q=0.8', 'hi'],
  ['mr-IN,mr;q=0.9,en;q=0.8,hi;q=0.7', 'en'],
  ['hi-Latn', 'en'],
  ['hi-Latn-IN,hi;q=0.5', 'hi'],
  ['hi;q=0', 'en'],
  ['hi;q=0,*', 'en'],
  ['*', 'en'],
  ['hil', 'en'],
  ['fr', 'en'],
  ['', 'en'],
  [undefined, 'en'],
  ['__proto__, hi;q=0.3', 'hi'],
  [';;;,,,q=1', 'en'],
])('the service maps the Accept-Language header “%s” to the language %s', (header, language) => {
  expect(preferredLanguage(header, ['en', 'hi'])).toBe(language)
})

it('the service reads only the first 20 ranges of Accept-Language', () => {
  expect(preferredLanguage(`${'fr,'.repeat(19)}hi`, ['en', 'hi'])).toBe('hi')
  expect(preferredLanguage(`${'fr,'.repeat(20)}hi`, ['en', 'hi'])).toBe('en')
})
