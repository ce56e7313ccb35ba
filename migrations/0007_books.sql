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

-- The books read these views. Only here stands which acquirer an account belongs to, and on which day a line is included.

-- Every version of every settlement line: a row of a bank's or acquirer's file. A version was valid from recorded_at until before
-- replaced_at; one that an import's undo replaced is `undone`. `item` is the UTR of the payment that the line settles; `acquirer` is
-- the account without the acquirer account, because a file may name an account where payments name none. The debt of
-- `clearing_account` changes. `gross_paise` includes fee and tax. The line is included on `day`, in India. A deduction, and a line
-- of a dispute, settle no payment.
create view settlement_lines as
-- Citus takes the names of the columns from this first part. A condition on `at` reaches an index in each part.
select mid, utr, upper(coalesce(payment_utr, utr)) as item, payment_utr is not null as names_payment, status,
       is_deduction(amount_paise, event) as is_deduction, event, acquirer_of(account) collate "C" as acquirer, account,
       coalesce(paid_account, account, 'unknown') as clearing_account, bank_reference_number as reference, import_id, initiated_at as at,
       ist_day(initiated_at) as day, initiated_at, amount_paise as net_paise,
       amount_paise + coalesce(fee_paise, 0) + coalesce(tax_paise, 0) as gross_paise, fee_paise, tax_paise, recorded_at,
       'infinity'::timestamptz as replaced_at, null::integer as replaced_by_import_id, false as undone
  from settlements
 where value_date is null
 union all
select mid, utr, upper(coalesce(payment_utr, utr)), payment_utr is not null, status, is_deduction(amount_paise, event), event,
       acquirer_of(account) collate "C", account, coalesce(paid_account, account, 'unknown'), bank_reference_number, import_id,
       start_of_ist_day(value_date), value_date, initiated_at, amount_paise,
       amount_paise + coalesce(fee_paise, 0) + coalesce(tax_paise, 0), fee_paise, tax_paise, recorded_at, 'infinity', null, false
  from settlements
 where value_date is not null
 union all
select mid, utr, upper(coalesce(payment_utr, utr)), payment_utr is not null, status, is_deduction(amount_paise, event), event,
       acquirer_of(account) collate "C", account, coalesce(paid_account, account, 'unknown'), bank_reference_number, import_id,
       coalesce(start_of_ist_day(value_date), initiated_at),
       coalesce(value_date, ist_day(initiated_at)), initiated_at, amount_paise,
       amount_paise + coalesce(fee_paise, 0) + coalesce(tax_paise, 0), fee_paise, tax_paise, recorded_at, replaced_at,
       replaced_by_import_id, undone
  from settlement_versions;

-- The times of settlement_lines by account. Two parts with the same columns, so that PostgreSQL finds an account's first or last line
-- by the index and reads no other.
create view account_lines as
select mid, account, coalesce(start_of_ist_day(value_date), initiated_at) as at, status,
       is_deduction(amount_paise, event) as is_deduction, recorded_at, 'infinity'::timestamptz as replaced_at
  from settlements
 union all
select mid, account, coalesce(start_of_ist_day(value_date), initiated_at), status,
       is_deduction(amount_paise, event), recorded_at, replaced_at
  from settlement_versions;

-- The items that lines of disputes name: the UTR of the disputed payment, or the id of the dispute in upper case.
create view disputed_items as
select mid, item, min(order_id) as order_id, min(recorded_at) as recorded_at
  from (select mid, utr as item, order_id, recorded_at from disputes
         union all
        select mid, upper(dispute_id) collate "C", order_id, recorded_at from disputes) d
 group by mid, item;

-- The acquirers' debts to each merchant, as open items. A row is a movement of the item that the UTR of a payment identifies; it is
-- included on `day`, in India, and was valid from recorded_at until before replaced_at. A positive amount is owed to the merchant.
-- The sum of an item's movements is its balance; the sum of all movements up to a day is carried forward from that day. A duplicate
-- payment is a movement `second`: the acquirer has received its money for the merchant too. A movement `dispute` is the other side of a
-- line of a disputed payment, since line and dispute are known: the dispute owes the money, not the acquirer. `acquirer` places a movement in a
-- payout, and `account` in the ledger of an acquirer account.
create view ledger as
select p.mid, p.utr as item, case p.kind when 'second' then 'second' else 'payment' end as kind, p.utr as name, p.order_id,
       acquirer_of(p.acquirer) collate "C" as acquirer, p.acquirer as account, coalesce(p.paid_at, p.received_at) as at,
       ist_day(coalesce(p.paid_at, p.received_at)) as day, p.amount_paise,
       p.received_at as recorded_at, 'infinity'::timestamptz as replaced_at, null::integer as import_id,
       null::integer as replaced_by_import_id
  from payments p
 union all
select mid, item, case when is_deduction then 'deduction' else 'settlement' end, utr, null, acquirer, clearing_account, at, day, -gross_paise,
       recorded_at, replaced_at, import_id, replaced_by_import_id
  from settlement_lines
 where status = 'SUCCESS'
 union all
select mid, utr, 'refund', our_refund_id, order_id, acquirer_of(acquirer) collate "C", acquirer, ended_at,
       ist_day(ended_at), -amount_paise, ended_at, 'infinity', null, null
  from refunds
 where status = 'SUCCESS'
 union all
select t.mid, r.utr, 'refund returned', r.our_refund_id, r.order_id, acquirer_of(r.acquirer) collate "C", r.acquirer, t.returned_at,
       ist_day(t.returned_at), r.amount_paise, t.returned_at, 'infinity', null, null
  from refund_returns t
  join refunds r on r.mid = t.mid and r.our_refund_id = t.our_refund_id
 union all
select l.mid, l.item, 'dispute', l.utr, d.order_id, l.acquirer, l.clearing_account, l.at, l.day, l.gross_paise,
       greatest(l.recorded_at, d.recorded_at), l.replaced_at, l.import_id, l.replaced_by_import_id
  from settlement_lines l
  join disputed_items d on d.mid = l.mid and d.item = l.item
 where l.status = 'SUCCESS' and l.event in ('dispute', 'dispute reversal')
 union all
select mid, coalesce(utr, settlement_utr, '') collate "C", 'resolution', difference_id, order_id, null, account,
       start_of_ist_day(day), day, amount_paise, resolved_at, 'infinity', null, null
  from difference_resolutions
 where amount_paise <> 0;

-- The movements `dispute` of payments whose dispute was lost or accepted, on the day since which both are known: the merchant bears
-- these amounts. Those of a duplicate payment were the customer's.
create view lost_disputes as
select l.mid, l.name, l.order_id, l.account, s.is_second, greatest(l.at, s.at) as at, greatest(l.day, s.day) as day, l.amount_paise,
       greatest(l.recorded_at, s.recorded_at) as recorded_at, l.replaced_at
  from ledger l
  join (select distinct on (mid, item) mid, item, is_second, recorded_at, at, ist_day(at) as day
          from (select d.mid, i.item, p.kind = 'second' as is_second, t.recorded_at, t.stated_at,
                       case when t.stated_at between '2000-01-01' and t.recorded_at then t.stated_at else t.recorded_at end as at
                  from disputes d
                  join payments p on p.mid = d.mid and p.utr = d.utr
                  join dispute_states t on t.mid = d.mid and t.acquirer = d.acquirer and t.dispute_id = d.dispute_id
                 cross join lateral (values (d.utr), (upper(d.dispute_id) collate "C")) i (item)
                 where t.status in ('lost', 'accepted')) lost
         order by mid, item, recorded_at, stated_at) s
    on s.mid = l.mid and s.item = l.item
 where l.kind = 'dispute';

-- Reports of money that was not taken for a payment, or that a payment has failed after all, each with its resolution. `mid` is
-- empty where the order is unknown. `day` is the bank's, else the day of the report. A resolution by a payment explains no
-- settlement, because the payment itself is a movement.
create view money_exceptions as
select e.mid, e.exception_id, e.kind, nullif(e.order_id, '') as order_id, upper(e.utr) collate "C" as utr, e.amount_paise,
       ist_day(coalesce(e.paid_at, e.received_at)) as day, e.received_at,
       case when r.order_id is null then r.reason end as resolution, r.resolved_at
  from payment_exceptions e
  left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
 where e.kind = 'failure after success'
    or (e.utr <> '' and e.status in ('SUCCESS', '') and e.kind in ('unknown order', 'amount differs', 'UTR of another order',
        'double payment'));
