-- Accounts at acquirers besides the one of the environment. The name, such as `setu:acme`, is what merchants, orders, payments and
-- refunds have as their acquirer: an instance of the version before then takes none of them for the account of its environment.
create table acquirer_accounts (
  name text not null,
  -- Sealed: see encryption.ts. The earlier ones count too for notifications, until the rotation is finished.
  secrets bytea not null,
  earlier_secrets bytea,
  created_at timestamptz not null,
  disabled_at timestamptz,
  constraint acquirer_accounts_pkey primary key (name),
  constraint acquirer_accounts_name_check check (name ~ '^[a-z0-9-]{1,32}:[A-Za-z0-9_-]{1,64}$')
);

alter table merchants drop constraint merchants_acquirer_check;
alter table merchants
  add constraint merchants_acquirer_check check (acquirer ~ '^[a-z0-9-]{1,32}(:[A-Za-z0-9_-]{1,64})?$');

-- The view of 0026. Payments and refunds that have an account count by its acquirer, as settlements do: files named accounts before
-- payments had any, and what they settled must not change.
create or replace view ledger as
select p.mid, p.utr as item, 'payment' as kind, p.utr as name, p.order_id,
       split_part(p.acquirer, ':', 1) as account,
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
select r.mid, r.utr, 'refund', r.our_refund_id, r.order_id, split_part(r.acquirer, ':', 1), r.ended_at,
       (r.ended_at at time zone interval '330 minutes')::date, -r.amount_paise::bigint, 0, 0, true, r.ended_at, 'infinity'
  from refunds r
  join payments p on p.mid = r.mid and p.utr = r.utr and p.kind <> 'second'
 where r.status = 'SUCCESS'
 union all
select mid, coalesce(utr, settlement_utr, '') collate "C", 'resolution', difference_id, order_id, null,
       day::timestamp at time zone interval '330 minutes', day, amount_paise, 0, 0, true, resolved_at, 'infinity'
  from difference_resolutions;

-- The acquirer that is asked for a link when the first one says that it has made none.
alter table merchants
  add column next_acquirer text,
  add column next_acquirer_merchant_id text;
alter table merchants
  add constraint merchants_next_acquirer_check check (next_acquirer ~ '^[a-z0-9-]{1,32}(:[A-Za-z0-9_-]{1,64})?$');
alter table merchants
  add constraint merchants_next_acquirer_merchant_id_check check (next_acquirer_merchant_id ~ '^[A-Za-z0-9_.-]{1,64}$');

-- Whether the merchant's next acquirer has made the link.
alter table acquirer_intents add column by_next boolean not null default false;
create index acquirer_intents_by_next_idx on acquirer_intents (mid, order_id) where by_next;
