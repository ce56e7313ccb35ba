-- Days on which banks are closed besides Sundays and second and fourth Saturdays. The history shows who changed the bank days of a
-- closed month. Append-only.
create table bank_holiday_changes (
  day date not null,
  change smallint not null, -- 1, 2, … within the day, so that of two concurrent changes one is rejected.
  -- Null if the change removes the holiday.
  name text constraint bank_holiday_changes_name_check check (char_length(name) between 1 and 255),
  changed_by text not null,
  changed_at timestamptz not null,
  constraint bank_holiday_changes_pkey primary key (day, change)
);
create trigger bank_holiday_changes_append_only before update or delete or truncate on bank_holiday_changes
  for each statement execute function refuse_to_rewrite();

create view bank_holidays (day, name) as
select day, name
  from (select distinct on (day) day, name from bank_holiday_changes order by day, change desc) newest
 where name is not null;

-- What an acquirer may deduct from a merchant's payments by contract. The first four columns name a rate. A payment is judged by
-- the newest row of its day or before, so that a later contract changes no earlier month.
create table contract_rates (
  mid text not null,
  acquirer text not null, -- Such as `setu`, or `setu:acme` for the payments of one acquirer account.
  instrument text not null, -- Empty for payments by any instrument.
  above_paise bigint not null, -- For payments above this amount.
  since date not null, -- The first day in India.
  -- Percent of the payment, an amount for each payment, and tax in percent of both; null if the rate ends on this day.
  percent numeric(4, 2),
  flat_paise bigint,
  tax_percent numeric(4, 2),
  constraint contract_rates_pkey primary key (mid, acquirer, instrument, above_paise, since),
  constraint contract_rates_instrument_check check (instrument in ('', 'bank account', 'credit card', 'wallet', 'credit line')),
  constraint contract_rates_fee_check check (
    num_nonnulls(percent, flat_paise, tax_percent) in (0, 3) and above_paise >= 0 and percent >= 0 and flat_paise >= 0 and tax_percent >= 0)
);

-- Entries by which an operator resolves a difference. A difference that changes afterwards may have several. Append-only.
create table difference_resolutions (
  mid text not null,
  difference_id text not null, -- 16 hex digits, computed from mid, day, kind, utr and settlement_utr.
  -- 1, 2, … within the difference, so that of two concurrent entries one is rejected.
  entry smallint not null,
  day date not null,
  kind text not null,
  order_id text,
  utr text,
  settlement_utr text,
  -- What the entry adds to the bank's debt to the merchant; negative if it reduces the debt.
  amount_paise bigint not null,
  account text not null, -- The acquirer account of the debt; `unknown` if neither payment nor file names it.
  written_off_as text,
  reason text not null,
  resolved_by text not null,
  resolved_at timestamptz not null,
  constraint difference_resolutions_pkey primary key (mid, difference_id, entry),
  constraint difference_resolutions_written_off_as_check
    check (written_off_as in ('chargeback', 'charge', 'write-off', 'bank-error'))
);
create index difference_resolutions_mid_day_idx on difference_resolutions (mid, day);
create trigger difference_resolutions_append_only before update or delete or truncate on difference_resolutions
  for each statement execute function refuse_to_rewrite();

-- The report of each closed month. Append-only.
create table closed_months (
  month text not null constraint closed_months_pkey primary key, -- `YYYY-MM`
  closed_at timestamptz not null,
  closed_by text not null,
  sha256 text not null, -- Of the text of `figures`, in hex.
  -- Totals by merchant, as `ops reconcile --json` prints them; those of all merchants are under `*`.
  figures json not null
);
create trigger closed_months_append_only before update or delete or truncate on closed_months
  for each statement execute function refuse_to_rewrite();

-- The items of the balance that a closed month carries forward. Append-only.
create table closed_items (
  mid text not null,
  month text not null, -- `YYYY-MM`
  -- The id of an open difference; empty for the remainder, whose settlement was not yet expected or was resolved after the month.
  item text not null,
  day date not null, -- The day of the difference; the month's last day for the remainder.
  balance_paise bigint not null,
  constraint closed_items_pkey primary key (mid, month, item)
);
create trigger closed_items_append_only before update or delete or truncate on closed_items
  for each statement execute function refuse_to_rewrite();

-- The balance that a closed month carries forward by acquirer account. The accounts of a merchant add up to its figure
-- carriedForward. Append-only.
create table closed_balances (
  mid text not null,
  month text not null, -- `YYYY-MM`
  account text not null, -- `unknown` for rows whose account was not known.
  balance_paise bigint not null,
  -- What the movements add up to beside the balance, because a resolved exception explains it.
  explained_paise bigint not null,
  constraint closed_balances_pkey primary key (mid, month, account)
);
create trigger closed_balances_append_only before update or delete or truncate on closed_balances
  for each statement execute function refuse_to_rewrite();

-- The names that a merchant's ledgers have in Tally.
create table ledger_names (
  mid text not null,
  ledger text not null, -- As in the journal, such as `UPI receipts`.
  name text not null constraint ledger_names_name_check check (char_length(name) between 1 and 99),
  constraint ledger_names_pkey primary key (mid, ledger)
);

-- The day in India of a moment, and the acquirer of an acquirer account such as `setu:acme`. Without settings of their own, so that
-- PostgreSQL inlines them: a plan is that of the expression.
create function ist_day(moment timestamptz) returns date language sql immutable parallel safe as $$
  select (moment at time zone interval '330 minutes')::date
$$;
create function acquirer_of(account text) returns text language sql immutable parallel safe as $$
  select split_part(account, ':', 1)
$$;

-- The acquirers' debts to each merchant, as open items. A row is a movement of the item that the UTR of a payment identifies; it is
-- included on `day`, in India, and was valid from recorded_at until before replaced_at. A positive amount is owed to the merchant.
-- The sum of an item's movements is its balance; the sum of all movements up to a day is carried forward from that day.
-- `account` is the acquirer without the acquirer account, because a file may name an account where payments name none.
create view ledger as
-- Citus takes the names of the columns from this first part.
select p.mid, p.utr as item, 'payment' as kind, p.utr as name, p.order_id,
       acquirer_of(p.acquirer) as account,
       coalesce(p.paid_at, p.received_at) as at,
       ist_day(coalesce(p.paid_at, p.received_at)) as day, p.amount_paise,
       0::bigint as fee_paise, 0::bigint as tax_paise, true as names_payment, p.received_at as recorded_at,
       'infinity'::timestamptz as replaced_at
  from payments p
 where p.kind <> 'second'
 union all
select s.mid, upper(coalesce(s.payment_utr, s.utr)), case when s.amount_paise < 0 then 'deduction' else 'settlement' end, s.utr,
       null, acquirer_of(s.account), s.at, ist_day(s.at),
       -(s.amount_paise + coalesce(s.fee_paise, 0) + coalesce(s.tax_paise, 0)), coalesce(s.fee_paise, 0),
       coalesce(s.tax_paise, 0), s.payment_utr is not null, s.recorded_at, s.replaced_at
  from (select mid, utr, payment_utr, amount_paise, fee_paise, tax_paise, account, recorded_at, status, initiated_at as at,
               'infinity'::timestamptz as replaced_at
          from settlements
         where value_date is null
         union all
        select mid, utr, payment_utr, amount_paise, fee_paise, tax_paise, account, recorded_at, status,
               value_date::timestamp at time zone interval '330 minutes', 'infinity'
          from settlements
         where value_date is not null
         union all
        select mid, utr, payment_utr, amount_paise, fee_paise, tax_paise, account, recorded_at, status,
               coalesce(value_date::timestamp at time zone interval '330 minutes', initiated_at), replaced_at
          from settlement_versions) s
 where s.status = 'SUCCESS'
 union all
select r.mid, r.utr, 'refund', r.our_refund_id, r.order_id, acquirer_of(r.acquirer), r.ended_at,
       ist_day(r.ended_at), -r.amount_paise, 0, 0, true, r.ended_at, 'infinity'
  from refunds r
  join payments p on p.mid = r.mid and p.utr = r.utr and p.kind <> 'second'
 where r.status = 'SUCCESS'
 union all
select mid, coalesce(utr, settlement_utr, '') collate "C", 'resolution', difference_id, order_id, null,
       day::timestamp at time zone interval '330 minutes', day, amount_paise, 0, 0, true, resolved_at, 'infinity'
  from difference_resolutions;
