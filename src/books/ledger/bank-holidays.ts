import type { Queryable } from '../../platform/db/pool.ts'

/** A day on which banks are closed besides Sundays and second and fourth Saturdays. `day` is `YYYY-MM-DD`. */
export type BankHoliday = { day: string; name: string }

const DAY = `to_char(day, 'YYYY-MM-DD')`

type ChangedBy = { by: string; now: Date }

export function createBankHolidays(db: Queryable) {
  async function change(days: readonly { day: string; name: string | null }[], { by, now }: ChangedBy): Promise<void> {
    if (days.length === 0) return
    await db.query(
      `insert into bank_holiday_changes (day, change, name, changed_by, changed_at)
       select day, (select count(*) + 1 from bank_holiday_changes c where c.day = h.day), name, $3, $4
         from unnest($1::date[], $2::text[]) as h (day, name)`,
      [days.map(({ day }) => day), days.map(({ name }) => name), by, now],
    )
  }

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

    /** Adds the holidays whose day is none yet, and returns their number. A day that is a holiday keeps its name. */
    async add(holidays: readonly BankHoliday[], { by, now }: ChangedBy): Promise<number> {
      const known = new Set((await this.list()).map(({ day }) => day))
      const added = holidays.filter(({ day }) => !known.has(day) && known.add(day))
      await change(added, { by, now })
      return added.length
    },

    /** Returns the name of the removed holiday; undefined when the day was none. */
    async remove(day: string, changed: ChangedBy): Promise<string | undefined> {
      const holiday = (await this.list(day.slice(0, 4))).find((one) => one.day === day)
      if (holiday) await change([{ day, name: null }], changed)
      return holiday?.name
    },
  }
}

/** Every bank holiday that was known, as `YYYY-MM-DD`. */
export async function holidaysOf(db: Queryable, known: Date): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ day: string }>(
    `select ${DAY} as day
       from (select distinct on (day) day, name
               from bank_holiday_changes
              where changed_at <= $1
              order by day, change desc) newest
      where name is not null`,
    [known],
  )
  return new Set(rows.map(({ day }) => day))
}
