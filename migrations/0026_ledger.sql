-- The acquirer account that has paid a settlement out; null where its file does not say. And the day on which the money counts:
-- the bank's value date, or the day on which a pending settlement succeeded; null where initiated_at says it.
alter table settlements
  add column account text,
  add column value_date date;
alter table settlement_versions
  add column account text,
  add column value_date date;

-- Holds only what has a value date, which files seldom have.
create index settlements_value_date_idx
  on settlements (mid, (value_date::timestamp at time zone interval '330 minutes')) where value_date is not null;

-- Holds only payments of the acquirer's day file, which are few: the books count them.
create index payment_changes_day_file_idx on payment_changes (mid, changed_at) where reason = 'day file';

-- Finds what a person has written off one item.
alter table difference_resolutions add column written_off_as text;
alter table difference_resolutions
  add constraint difference_resolutions_written_off_as_check
    check (written_off_as in ('chargeback', 'charge', 'write-off', 'bank-error'));

-- Every settlement says since when it is known, so that no condition has to ask for null.
update settlements set known_at = '-infinity' where known_at is null;
alter table settlements alter column known_at set default '-infinity';
update settlement_versions set known_at = '-infinity' where known_at is null;
alter table settlement_versions alter column known_at set default '-infinity';

-- What the money carried forward from a closed month consists of. Append-only.
create table closed_items (
  mid text not null,
  -- `YYYY-MM`
  month text not null,
  -- The id of a difference that was open; empty for the rest, which was not due yet or has ended since the month.
  item text not null,
  -- Of the difference; the last one of the month for the rest.
  day date not null,
  balance_paise bigint not null,
  constraint closed_items_pkey primary key (mid, month, item)
);
create trigger closed_items_append_only before update or delete or truncate on closed_items
  for each statement execute function refuse_to_rewrite();

-- What the acquirers owe each merchant, as open items. A row is a movement of an item, which is named by the UTR of a payment; it
-- counts on `day`, India's, and was known from recorded_at until replaced_at. Positive amounts are owed to the merchant. The sum of
-- an item's movements is what is left of it; the sum of all movements of the days until a day is carried forward from that day.
-- Payments know their acquirer and not yet its account, so that settlements count by the acquirer too.
create view ledger as
-- Citus takes the names of the columns from this first part.
select p.mid, p.utr as item, 'payment' as kind, p.utr as name, p.order_id, p.acquirer as account,
       coalesce(p.paid_at, p.heard_at) as at,
       (coalesce(p.paid_at, p.heard_at) at time zone interval '330 minutes')::date as day, p.amount_paise::bigint as amount_paise,
       0::bigint as fee_paise, 0::bigint as tax_paise, true as names_payment, p.heard_at as recorded_at,
       'infinity'::timestamptz as replaced_at
  from payments p
 where p.kind <> 'second'
 union all
select s.mid, upper(coalesce(s.payment_utr, s.utr)), case when s.amount < 0 then 'deduction' else 'settlement' end, s.utr,
       null, split_part(s.account, ':', 1), s.at, (s.at at time zone interval '330 minutes')::date,
       -((s.amount + coalesce(s.fee, 0) + coalesce(s.tax, 0)) * 100)::bigint, (coalesce(s.fee, 0) * 100)::bigint,
       (coalesce(s.tax, 0) * 100)::bigint, s.payment_utr is not null, s.known_at, s.replaced_at
  from (select mid, utr, payment_utr, amount, fee, tax, account, known_at, status, initiated_at as at,
               'infinity'::timestamptz as replaced_at
          from settlements
         where value_date is null
         union all
        select mid, utr, payment_utr, amount, fee, tax, account, known_at, status,
               value_date::timestamp at time zone interval '330 minutes', 'infinity'
          from settlements
         where value_date is not null
         union all
        select mid, utr, payment_utr, amount, fee, tax, account, known_at, status,
               coalesce(value_date::timestamp at time zone interval '330 minutes', initiated_at), replaced_at
          from settlement_versions) s
 where s.status = 'SUCCESS'
 union all
select r.mid, r.utr, 'refund', r.our_refund_id, r.order_id, r.acquirer, r.ended_at,
       (r.ended_at at time zone interval '330 minutes')::date, -r.amount_paise::bigint, 0, 0, true, r.ended_at, 'infinity'
  from refunds r
  join payments p on p.mid = r.mid and p.utr = r.utr and p.kind <> 'second'
 where r.status = 'SUCCESS'
 union all
select mid, coalesce(utr, settlement_utr, '') collate "C", 'resolution', difference_id, order_id, null,
       day::timestamp at time zone interval '330 minutes', day, amount_paise, 0, 0, true, resolved_at, 'infinity'
  from difference_resolutions;
