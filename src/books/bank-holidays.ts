import type { Queryable } from '../db/pool.ts'

/** A day on which banks are closed besides Sundays and second and fourth Saturdays. `day` is `YYYY-MM-DD`. */
export type BankHoliday = { day: string; name: string }

const DAY = `to_char(day, 'YYYY-MM-DD')`

export function createBankHolidays(db: Queryable) {
  return {
    /** In the order of the days; all years unless one is given. */
    async list(year?: string): Promise<BankHoliday[]> {
      const { rows } = await db.query<BankHoliday>(
        `select ${DAY} as day, name
           from bank_holidays
          where $1::text is null or to_char(day, 'YYYY') = $1
          order by bank_holidays.day`,
        [year],
      )
      return rows
    },

    /** Adds those whose day is not a holiday yet, and returns their number. A day that is one keeps its name. */
    async add(holidays: readonly BankHoliday[], now: Date): Promise<number> {
      // Rows are counted that it returns: by Citus' own count those of a conflict are stored too.
      const { rows } = await db.query(
        `insert into bank_holidays (day, name, added_at)
         select day, name, $3 from unnest($1::date[], $2::text[]) as h (day, name)
         on conflict do nothing
         returning 1`,
        [holidays.map(({ day }) => day), holidays.map(({ name }) => name), now],
      )
      return rows.length
    },

    /** Returns the name of the holiday that it has removed; undefined when the day was none. */
    async remove(day: string): Promise<string | undefined> {
      const { rows } = await db.query<{ name: string }>('delete from bank_holidays where day = $1 returning name', [
        day,
      ])
      return rows[0]?.name
    },
  }
}

/** Every bank holiday, as `YYYY-MM-DD`. */
export async function holidaysOf(db: Queryable): Promise<ReadonlySet<string>> {
  return new Set((await createBankHolidays(db).list()).map(({ day }) => day))
}
