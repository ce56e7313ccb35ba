/** Markup that only `html` and `trustedHtml` create. A page escapes any other text. */
class Html {
  private readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }

  toString(): string {
    return this.markup
  }
}

export type { Html }

/** A value in a template. `undefined` adds nothing; the items of an array follow one another. */
type Value = Html | string | number | undefined | readonly Value[]

/** A template of HTML. Values that are not Html are escaped for text and for quoted attributes. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(String.raw({ raw: parts }, ...values.map(toMarkup)))
}

/** Returns markup that is not escaped. The argument must be this project's own markup, never text from a request. */
export const trustedHtml = (markup: string): Html => new Html(markup)

function toMarkup(value: Value): string {
  if (value === undefined) return ''
  if (value instanceof Html) return value.toString()
  if (typeof value === 'object') return value.map(toMarkup).join('')
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
