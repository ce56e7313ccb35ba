-- More rules for the role of the service, as in 0020: the owner's triggers, with functions that run as the caller and qualified
-- names. A row that depends on another row of the same statement is checked by an `after` trigger, which runs at the statement's
-- end. On Citus it runs at the end of each part of the statement, so a row is compared only with rows of the parts before it.
-- Instances of the version before write nothing that the triggers reject. Tables are locked in the order in which a payment locks them.

-- A paid order needs a payment of its amount in the ledger, which has no second payments: reconciliation then names an order as
-- not settled that the bank does not know as paid.
create function check_paid_order_of_service() returns trigger language plpgsql as $$
begin
  if not exists (
    select from public.payments
     where mid = new.mid and utr = new.utr and order_id = new.order_id and kind <> 'second'
       and amount_paise = new.amount * 100 + new.paise
  ) then
    raise exception using errcode = 'check_violation', message = 'a paid order has a payment of its amount';
  end if;
  return null;
end
$$;

-- A link pays the payee of its order, whom the role cannot change. Links of acquirers' sandboxes have no payee: they begin with
-- https. Orders of a merchant without an acquirer have no link, so no link of either kind can be added to them.
create function check_link_of_service() returns trigger language plpgsql as $$
begin
  if not exists (
    select from public.payment_intents i
      join public.merchants m on m.mid = i.mid
     where i.mid = new.mid and i.order_id = new.order_id and m.acquirer <> 'direct'
       and (new.link ~ '^https://[!-~]+$'
            or (new.link ~ '^upi://pay\?[!$-~]+$'
                -- An app may decode names and ignore their case, so a name with a `%` is a payee too.
                and array(select replace(substr(parameter, 4), '%40', '@')
                            from string_to_table(substr(new.link, 11), '&') as parameter
                           where parameter ~* '^(pa=|[^=]*%)') = array[i.payee_vpa]))
  ) then
    raise exception using errcode = 'check_violation', message = 'a link pays the payee of its order';
  end if;
  return new;
end
$$;

-- Merchants trust a signed event, so it needs the order or the refund in the status that it reports.
create function check_event_of_service() returns trigger language plpgsql as $$
begin
  if new.type in ('refund.succeeded', 'refund.failed') then
    perform from public.refunds
      where mid = new.mid and our_refund_id = new.our_refund_id and order_id = new.order_id and reference = new.utr
        and status = new.txn_status and status = case new.type when 'refund.succeeded' then 'SUCCESS' else 'FAIL' end;
  elsif new.type = 'payment.succeeded' then
    perform from public.payment_intents
      where mid = new.mid and order_id = new.order_id and status = 'SUCCESS' and utr = new.utr and new.txn_status = 'SUCCESS';
  else
    perform from public.payment_intents
      where mid = new.mid and order_id = new.order_id and status <> 'SUCCESS' and new.txn_status <> 'SUCCESS';
  end if;
  if not found then
    raise exception using errcode = 'check_violation', message = 'an event is a status of its order or refund';
  end if;
  return null;
end
$$;

create trigger payment_changes_without_operator before insert on payment_changes for each row
  when (current_user = 'upi_service' and (new.told_by is not null or new.reason in ('operator', 'day file')))
  execute function refuse_row('an operator reports payments by ops');

create trigger payment_attempts_without_operator before insert on payment_attempts for each row
  when (current_user = 'upi_service' and new.reason in ('operator', 'day file'))
  execute function refuse_row('an operator reports payments by ops');

create trigger payment_intents_created_by_service before insert on payment_intents for each row
  when (current_user = 'upi_service' and new.status <> 'PENDING')
  execute function refuse_row('a new order is not paid');

-- For every role: no operation undoes a payment.
create trigger payment_intents_payment_is_final before update of status, utr on payment_intents for each row
  when (old.status = 'SUCCESS' and (new.status <> old.status or new.utr is distinct from old.utr))
  execute function refuse_row('a paid order is final');

create trigger payment_intents_paid_by_service after update of status, utr on payment_intents for each row
  when (current_user = 'upi_service' and new.status = 'SUCCESS' and old.status <> 'SUCCESS')
  execute function check_paid_order_of_service();

create trigger acquirer_intents_of_service before insert on acquirer_intents for each row
  when (current_user = 'upi_service')
  execute function check_link_of_service();

create trigger webhook_deliveries_of_service after insert on webhook_deliveries for each row
  when (current_user = 'upi_service')
  execute function check_event_of_service();

-- The service switches endpoints off, for a reason of its own; an operator switches them on.
create trigger webhook_endpoints_switched_by_service
  before update of disabled_at, disabled_reason on webhook_endpoints for each row
  when (current_user = 'upi_service'
    and (new.disabled_at, new.disabled_reason) is distinct from (old.disabled_at, old.disabled_reason)
    and (old.disabled_at is not null or new.disabled_reason = 'operator'))
  execute function refuse_row('an operator switches endpoints on and off by ops');

-- Reports about refunds name their source, as in payment_resolutions.
create trigger payment_exceptions_without_operator before insert on payment_exceptions for each row
  when (current_user = 'upi_service' and new.told_by not in ('notification', 'enquiry', 'answer'))
  execute function refuse_row('an operator reports exceptions by ops');
