import pg from 'pg'

/** A role with rights of its own. */
type Role = 'upi_service' | 'upi_console'

/** Runs `sql` on a connection of its own, whose URL names the role. */
export async function run(url: string, sql: string) {
  const connection = await connect(url)
  try {
    return await connection.query(sql)
  } finally {
    await connection.end()
  }
}

export async function connect(url: string): Promise<pg.Client> {
  const connection = new pg.Client({ connectionString: url })
  await connection.connect()
  return connection
}

/** The role's rights to each whole table and view of a database. */
export async function rightsOf(role: Role, url: string): Promise<Record<string, string[]>> {
  const { rows } = await run(
    url,
    `select relname as table,
            array(select right_ from unnest(array['INSERT', 'SELECT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER', 'MAINTAIN'])
                    as right_
                   where case
                           -- PostgreSQL 16 and older refuse to be asked for a right that they do not know.
                           when right_ = 'MAINTAIN' and current_setting('server_version_num')::int < 170000 then false
                           else has_table_privilege('${role}', oid, right_)
                         end) as rights
       from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm')
        -- The views of an extension such as Citus are not the project's.
        and not exists (select from pg_depend where objid = pg_class.oid and deptype = 'e')`,
  )
  return Object.fromEntries(rows.map(({ table, rights }) => [table, rights]))
}

/** The columns, by table, to which the role has a right that it does not have to the whole table. */
export async function columnsOf(role: Role, right: 'SELECT' | 'UPDATE', url: string): Promise<Record<string, string>> {
  const { rows } = await run(
    url,
    `select relname as table, string_agg(attname, ' ' order by attname) as columns
       from pg_attribute a
       join pg_class c on c.oid = attrelid
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and attnum > 0 and not attisdropped
        and has_column_privilege('${role}', attrelid, attnum, '${right}')
        and not has_table_privilege('${role}', attrelid, '${right}')
      group by relname
      order by relname`,
  )
  return Object.fromEntries(rows.map(({ table, columns }) => [table, columns]))
}
