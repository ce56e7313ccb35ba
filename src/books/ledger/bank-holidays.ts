import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'

/** A bank holiday other than the regular Sundays and second and fourth Saturdays. `day` is `YYYY-MM-DD`. */
export type BankHoliday = { day: string; name: string }

type ChangedBy = { by: string; now: Date }

export function createBankHolidays(db: Queryable) {
  async function change(days: readonly { day: string; name: string | null }[], changed: ChangedBy): Promise<void> {
    if (days.length === 0) return
    await CHANGE(db, { days: days.map(({ day }) => day), names: days.map(({ name }) => name), ...changed })
  }

  return {
    /** Returns holidays in date order: for `year` if given, otherwise for every year. */
    list: (year?: string): Promise<BankHoliday[]> => HOLIDAYS(db, { year }),

    /**
     * Adds the holidays whose days are not stored yet, and returns the number of added holidays. The name of a stored
     * holiday does not change.
     */
    async add(holidays: readonly BankHoliday[], { by, now }: ChangedBy): Promise<number> {
      const known = new Set((await this.list()).map(({ day }) => day))
      const added = holidays.filter(({ day }) => !known.has(day) && known.add(day))
      await change(added, { by, now })
      return added.length
    },

    /** Removes the holiday on `day` and returns its name, or undefined if no holiday is stored for `day`. */
    async remove(day: string, changed: ChangedBy): Promise<string | undefined> {
      const holiday = (await this.list(day.slice(0, 4))).find((one) => one.day === day)
      if (holiday) await change([{ day, name: null }], changed)
      return holiday?.name
    },
  }
}

const CHANGE = query<object, ChangedBy & { days: string[]; names: (string | null)[] }>(`
  insert into bank_holiday_changes (day, change, name, changed_by, changed_at)
  select day, (select count(*) + 1 from bank_holiday_changes c where c.day = h.day), name, :by, :now
    from unnest(:days::date[], :names::text[]) as h (day, name)`)

const HOLIDAYS = query<BankHoliday, { year: string | undefined }>(`
  select day, name
    from bank_holidays
   where :year::text is null or to_char(day, 'YYYY') = :year
   order by day`)

/** Returns the days (`YYYY-MM-DD`) of all bank holidays that were stored by the time `known`. */
export async function holidaysOf(db: Queryable, known: Date): Promise<ReadonlySet<string>> {
  return new Set((await KNOWN_HOLIDAYS(db, { known })).map(({ day }) => day))
}

const KNOWN_HOLIDAYS = query<{ day: string }, { known: Date }>(`
  select day
    from (select distinct on (day) day, name
            from bank_holiday_changes
           where changed_at <= :known
           order by day, change desc) newest
   where name is not null`)
