-- The version before writes no payments while it still runs beside this one's migration: what it has recorded since 0015 is added.
insert into payments (mid, utr, order_id, amount_paise, paid_at, heard_at, kind, acquirer)
select i.mid, upper(i.utr), i.order_id, i.amount * 100 + i.paise, c.paid_at, coalesce(c.changed_at, i.created_at),
       case when e.order_id is null then 'first' else 'late' end, coalesce(a.acquirer, 'direct')
  from payment_intents i
  left join payment_changes c on c.mid = i.mid and c.order_id = i.order_id and c.status = 'SUCCESS'
  left join payment_exceptions e
    on e.mid = i.mid and e.order_id = i.order_id and e.kind = 'late payment' and e.utr = upper(i.utr)
  left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
 where i.utr is not null
on conflict do nothing;

insert into payments (mid, utr, order_id, amount_paise, paid_at, heard_at, kind, acquirer)
select e.mid, e.utr, e.order_id, round(e.amount * 100)::integer, e.paid_at, e.received_at, 'second',
       coalesce(a.acquirer, 'direct')
  from payment_exceptions e
  left join acquirer_intents a on a.mid = e.mid and a.order_id = e.order_id
 where e.kind = 'double payment' and e.utr <> ''
on conflict do nothing;

-- Finds a UTR that has paid orders of two merchants.
create index payments_utr_idx on payments (utr);

-- When money was paid: as the bank says, else when we heard of it.
create index payments_paid_idx on payments (mid, (coalesce(paid_at, heard_at)), utr);
drop index payments_mid_paid_at_utr_idx;

alter table payment_exceptions drop constraint payment_exceptions_kind_check;
alter table payment_exceptions
  add constraint payment_exceptions_kind_check check (kind in (
    'unknown order', 'amount differs', 'UTR of another order', 'UTR of another merchant', 'double payment', 'late payment',
    'failure after success', 'unreadable'));

-- When the merchant was first answered that an order has failed for good; null while nobody asked after its end.
alter table payment_intents add column fail_told_at timestamptz;

-- A bank takes money back by a row with a negative amount; fee and tax of it may come back too.
alter table settlements drop constraint settlements_amount_check;
alter table settlements drop constraint settlements_fee_check;
alter table settlements drop constraint settlements_tax_check;
alter table settlements add constraint settlements_fee_check check (fee >= 0 or amount < 0) not valid;
alter table settlements add constraint settlements_tax_check check (tax >= 0 or amount < 0) not valid;
-- When this version of the row was stored; null for those of earlier versions of the service.
alter table settlements add column known_at timestamptz;

-- The payment that a row carries, of whatever merchant.
create index settlements_carried_utr_idx on settlements (upper(coalesce(payment_utr, utr)));
drop index settlements_payment_utr_idx;

-- Every version of a settlement that an import or an undo has replaced. It stood from known_at until before replaced_at.
create table settlement_versions (
  mid text not null,
  utr text collate "C" not null,
  amount numeric(14, 2) not null,
  bank_reference_number text not null,
  status text not null,
  initiated_at timestamptz not null,
  created_at timestamptz not null,
  fee numeric(14, 2),
  tax numeric(14, 2),
  payment_utr text collate "C",
  -- The import that had stored this version, or changed it last.
  import_id integer,
  known_at timestamptz,
  replaced_at timestamptz not null,
  -- The import whose rows, or whose undo, replaced it.
  replaced_by integer not null,
  undone boolean not null,
  constraint settlement_versions_pkey primary key (mid, utr, replaced_by, undone)
);
create index settlement_versions_carried_utr_idx on settlement_versions (upper(coalesce(payment_utr, utr)));
create index settlement_versions_mid_initiated_at_idx on settlement_versions (mid, initiated_at);
create index settlement_versions_replaced_by_idx on settlement_versions (replaced_by) where not undone;

insert into settlement_versions
  (mid, utr, amount, bank_reference_number, status, initiated_at, created_at, fee, tax, payment_utr, import_id, replaced_at,
   replaced_by, undone)
select s.mid, s.utr, s.amount, s.bank_reference_number, u.status, s.initiated_at, s.created_at, u.fee, u.tax, u.payment_utr,
       u.stored_import_id, i.imported_at, u.import_id, false
  from settlement_updates u
  join settlements s on s.mid = u.mid and s.utr = u.utr
  join settlement_imports i on i.import_id = u.import_id;

alter table settlement_imports
  -- Sums of the file's rows in rupees, and of those that were new; null for imports of earlier versions.
  add column amount numeric(20, 2),
  add column inserted_amount numeric(20, 2);

-- Days on which banks are closed beside Sundays and second and fourth Saturdays.
create table bank_holidays (
  day date not null,
  name text not null,
  added_at timestamptz not null,
  constraint bank_holidays_pkey primary key (day),
  constraint bank_holidays_name_check check (char_length(name) between 1 and 255)
);

-- Entries by which a person ends a difference. Several of one difference when it changed afterwards. Append-only.
create table difference_resolutions (
  mid text not null,
  -- 16 hex digits, made from mid, day, kind, utr and settlement_utr.
  difference_id text not null,
  -- 1, 2, … within the difference, so that of two persons at once one is refused.
  entry smallint not null,
  day date not null,
  kind text not null,
  order_id text,
  utr text,
  settlement_utr text,
  -- What it adds to what the bank owes the merchant; negative where it takes away.
  amount_paise bigint not null,
  reason text not null,
  resolved_by text not null,
  resolved_at timestamptz not null,
  constraint difference_resolutions_pkey primary key (mid, difference_id, entry)
);
create index difference_resolutions_mid_day_idx on difference_resolutions (mid, day);

create trigger difference_resolutions_append_only before update or delete or truncate on difference_resolutions
  for each statement execute function refuse_to_rewrite();

-- Finds what was stored since a moment, without reading a merchant's whole history: rows lie in the order of these times.
create index settlements_known_at_idx on settlements using brin (known_at);
create index payments_heard_at_idx on payments using brin (heard_at);

-- What was reported when a month was closed. Append-only.
create table closed_months (
  -- `YYYY-MM`
  month text not null,
  closed_at timestamptz not null,
  closed_by text not null,
  -- SHA-256 of the printed report, in hex.
  sha256 text not null,
  -- Totals by merchant, as `ops reconcile --json` prints them; those of all merchants are under `*`.
  figures json not null,
  constraint closed_months_pkey primary key (month)
);

create trigger closed_months_append_only before update or delete or truncate on closed_months
  for each statement execute function refuse_to_rewrite();
