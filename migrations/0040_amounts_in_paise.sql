-- Every amount is a whole number of paise in a bigint column `…_paise`. Rows are rewritten, and their tables are locked meanwhile.
-- Views, functions, triggers, checks and indexes of the old columns are created again for the new ones.
drop view ledger;

alter table payment_intents
  drop constraint payment_intents_amount_check,
  drop constraint payment_intents_paise_check;
alter table payment_intents alter column amount type bigint using amount * 100 + paise;
alter table payment_intents drop column paise;
alter table payment_intents rename column amount to amount_paise;
alter table payment_intents
  add constraint payment_intents_amount_check check (amount_paise between 100 and 50000000);

-- On Citus `drop trigger` leaves the triggers of shards in place; dropping the old column removes them.
alter table payments add column paise bigint;
alter table payments disable trigger user;
update payments set paise = amount_paise;
alter table payments enable trigger user;
alter table payments drop column amount_paise cascade;
alter table payments rename column paise to amount_paise;
alter table payments alter column amount_paise set not null;
create trigger payments_append_only
  before update of mid, utr, order_id, amount_paise, paid_at, heard_at, kind, acquirer or delete or truncate on payments
  for each statement execute function refuse_to_rewrite();

create or replace function check_paid_order_of_service() returns trigger language plpgsql as $$
begin
  if not exists (
    select from public.payments
     where mid = new.mid and utr = new.utr and order_id = new.order_id and kind <> 'second'
       and amount_paise = new.amount_paise
  ) then
    raise exception using errcode = 'check_violation', message = 'a paid order has a payment of its amount';
  end if;
  return null;
end
$$;

alter table refunds
  alter column amount_paise type bigint,
  alter column asked_paise type bigint;
create or replace function check_refund_of_service() returns trigger language plpgsql as $$
declare
  paid bigint;
  going_back bigint;
begin
  -- The snapshot of a whole transaction would not show what others have stored since.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'check_violation', message = 'a refund is made in read committed';
  end if;
  perform from public.payment_intents where mid = new.mid and order_id = new.order_id for no key update;
  select amount_paise into paid from public.payments where mid = new.mid and order_id = new.order_id and utr = new.utr;
  if not found then
    raise exception using errcode = 'check_violation', message = 'a refund is of a payment';
  end if;
  select coalesce(sum(amount_paise), 0)::bigint into going_back
    from public.refunds
   where mid = new.mid and order_id = new.order_id and utr = new.utr and status <> 'FAIL';
  if going_back + new.amount_paise > paid then
    raise exception using errcode = 'check_violation', message = 'more would go back than was paid';
  end if;
  return new;
end
$$;

drop index settlements_deductions_idx;
alter table settlements
  drop constraint settlements_fee_check,
  drop constraint settlements_tax_check;
alter table settlements
  alter column amount type bigint using amount * 100,
  alter column fee type bigint using fee * 100,
  alter column tax type bigint using tax * 100;
alter table settlements rename column amount to amount_paise;
alter table settlements rename column fee to fee_paise;
alter table settlements rename column tax to tax_paise;
alter table settlements
  add constraint settlements_fee_check check (fee_paise >= 0 or amount_paise < 0);
alter table settlements
  add constraint settlements_tax_check check (tax_paise >= 0 or amount_paise < 0);
create index settlements_deductions_idx on settlements (mid) where amount_paise < 0;

alter table settlement_versions
  alter column amount type bigint using amount * 100,
  alter column fee type bigint using fee * 100,
  alter column tax type bigint using tax * 100;
alter table settlement_versions rename column amount to amount_paise;
alter table settlement_versions rename column fee to fee_paise;
alter table settlement_versions rename column tax to tax_paise;

alter table settlement_imports
  alter column amount type bigint using amount * 100,
  alter column inserted_amount type bigint using inserted_amount * 100;
alter table settlement_imports rename column amount to amount_paise;
alter table settlement_imports rename column inserted_amount to inserted_amount_paise;

-- The id of an exception is computed from its amount in rupees as before, because payment_resolutions refers to it.
alter table payment_exceptions drop column exception_id;
alter table payment_exceptions alter column amount type bigint using amount * 100;
alter table payment_exceptions rename column amount to amount_paise;
alter table payment_exceptions
  add column exception_id text generated always as (
    left(lpad(to_hex(hashtextextended(
      mid || '|' || order_id || '|' || kind || '|' || utr || '|' || amount_paise * 0.01 || '|' || status || '|' || digest,
      0)), 16, '0'), 12)
  ) stored;
create index payment_exceptions_exception_id_idx on payment_exceptions (mid, exception_id);
create index payment_exceptions_acquirer_account_idx
  on payment_exceptions (mid, acquirer_account, kind, exception_id) where acquirer_account is not null;

-- A merchant's largest amount is whole rupees.
alter table merchants drop constraint merchants_max_amount_check;
alter table merchants alter column max_amount drop default;
alter table merchants alter column max_amount type bigint using max_amount * 100;
alter table merchants rename column max_amount to max_amount_paise;
alter table merchants alter column max_amount_paise set default 10000000;
alter table merchants
  add constraint merchants_max_amount_check check (max_amount_paise between 100 and 50000000 and max_amount_paise % 100 = 0);

create view ledger as
select p.mid, p.utr as item, 'payment' as kind, p.utr as name, p.order_id,
       split_part(p.acquirer, ':', 1) as account,
       coalesce(p.paid_at, p.heard_at) as at,
       (coalesce(p.paid_at, p.heard_at) at time zone interval '330 minutes')::date as day, p.amount_paise,
       0::bigint as fee_paise, 0::bigint as tax_paise, true as names_payment, p.heard_at as recorded_at,
       'infinity'::timestamptz as replaced_at
  from payments p
 where p.kind <> 'second'
 union all
select s.mid, upper(coalesce(s.payment_utr, s.utr)), case when s.amount_paise < 0 then 'deduction' else 'settlement' end, s.utr,
       null, split_part(s.account, ':', 1), s.at, (s.at at time zone interval '330 minutes')::date,
       -(s.amount_paise + coalesce(s.fee_paise, 0) + coalesce(s.tax_paise, 0)), coalesce(s.fee_paise, 0),
       coalesce(s.tax_paise, 0), s.payment_utr is not null, s.known_at, s.replaced_at
  from (select mid, utr, payment_utr, amount_paise, fee_paise, tax_paise, account, known_at, status, initiated_at as at,
               'infinity'::timestamptz as replaced_at
          from settlements
         where value_date is null
         union all
        select mid, utr, payment_utr, amount_paise, fee_paise, tax_paise, account, known_at, status,
               value_date::timestamp at time zone interval '330 minutes', 'infinity'
          from settlements
         where value_date is not null
         union all
        select mid, utr, payment_utr, amount_paise, fee_paise, tax_paise, account, known_at, status,
               coalesce(value_date::timestamp at time zone interval '330 minutes', initiated_at), replaced_at
          from settlement_versions) s
 where s.status = 'SUCCESS'
 union all
select r.mid, r.utr, 'refund', r.our_refund_id, r.order_id, split_part(r.acquirer, ':', 1), r.ended_at,
       (r.ended_at at time zone interval '330 minutes')::date, -r.amount_paise, 0, 0, true, r.ended_at, 'infinity'
  from refunds r
  join payments p on p.mid = r.mid and p.utr = r.utr and p.kind <> 'second'
 where r.status = 'SUCCESS'
 union all
select mid, coalesce(utr, settlement_utr, '') collate "C", 'resolution', difference_id, order_id, null,
       day::timestamp at time zone interval '330 minutes', day, amount_paise, 0, 0, true, resolved_at, 'infinity'
  from difference_resolutions;
