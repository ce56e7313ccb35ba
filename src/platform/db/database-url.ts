import pg from 'pg'

/**
 * Whether the driver reads `text` as a PostgreSQL URL. A # / or ? in the user or password ends the host, so that the @
 * before the meant host follows it: the driver would then connect to a part of the password, and messages would name
 * this part as host or database. Therefore # and an @ after the host are invalid.
 */
export function isDatabaseUrl(text: string): boolean {
  if (!/^postgres(?:ql)?:\/\/[^#/?]*(?:[/?][^#@]*)?$/.test(text)) return false
  try {
    new pg.Client({ connectionString: text })
    return true
  } catch (error) {
    // Other errors are about files and options of the connection, and the connection reports them.
    return !(error instanceof TypeError || error instanceof URIError)
  }
}
