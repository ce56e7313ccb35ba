-- The acquirer account whose notification an exception comes from, such as `setu:acme` or `direct`; null for other sources.
alter table payment_exceptions add column acquirer_account text;

-- Counts the open exceptions of one acquirer account and kind: its ids are in the order of the key of payment_resolutions.
create index payment_exceptions_acquirer_account_idx
  on payment_exceptions (mid, acquirer_account, kind, exception_id) where acquirer_account is not null;

-- The function of 0020. A refund that an acquirer initiates is no longer exempt: beyond the payment's amount the service stores an
-- exception instead. An instance of the version before responds with 500 to such a notification, which the acquirer repeats.
create or replace function check_refund_of_service() returns trigger language plpgsql as $$
declare
  paid integer;
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
  select coalesce(sum(amount_paise), 0) into going_back
    from public.refunds
   where mid = new.mid and order_id = new.order_id and utr = new.utr and status <> 'FAIL';
  if going_back + new.amount_paise > paid then
    raise exception using errcode = 'check_violation', message = 'more would go back than was paid';
  end if;
  return new;
end
$$;
