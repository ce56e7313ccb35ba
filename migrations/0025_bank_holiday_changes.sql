-- A holiday that is removed leaves its history, so that the books of a closed month can name who has changed their bank days.
create table bank_holiday_changes (
  day date not null,
  -- 1, 2, … within the day, so that of two persons at once one is refused.
  change smallint not null,
  -- Null where the day is no holiday any more.
  name text,
  changed_by text not null,
  changed_at timestamptz not null,
  constraint bank_holiday_changes_pkey primary key (day, change),
  constraint bank_holiday_changes_name_check check (char_length(name) between 1 and 255)
);

create trigger bank_holiday_changes_append_only before update or delete or truncate on bank_holiday_changes
  for each statement execute function refuse_to_rewrite();

insert into bank_holiday_changes (day, change, name, changed_by, changed_at)
select day, 1, name, 'migration', added_at from bank_holidays;

drop table bank_holidays;

create view bank_holidays (day, name) as
select day, name
  from (select distinct on (day) day, name from bank_holiday_changes order by day, change desc) newest
 where name is not null;
