-- A statement covers the days before its first line where an earlier one ends with the balance that it begins with: the day of the
-- newest line, and the balance after it. Null where not every line has a balance.
alter table statement_imports
  add column closing_day date,
  add column closing_paise bigint;

-- References that are mobile numbers (91, and a number that begins with 6 to 9) are stored no longer.
update statement_lines
   set refs = array(select r from unnest(refs) r where r !~ '(^|[^0-9])91[6-9][0-9]{9}($|[^0-9])' or r = matched_payout)
 where exists (select from unnest(refs) r where r ~ '(^|[^0-9])91[6-9][0-9]{9}($|[^0-9])');
