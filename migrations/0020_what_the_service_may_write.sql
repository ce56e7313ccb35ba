-- What the role of the service may not write, whoever has its password: money that went back once goes back once. The rules are
-- triggers of the owner, which the role cannot lift. Instances of the version before write nothing that they refuse. The functions
-- run as the caller: with `security definer` current_user would be the owner. Names are qualified, since the caller sets search_path.

-- Each trigger that uses it says why, and when.
create function refuse_row() returns trigger language plpgsql as $$
begin
  raise exception using errcode = 'check_violation', message = tg_argv[0];
end
$$;

create function check_payment_of_service() returns trigger language plpgsql as $$
begin
  if not exists (select from public.payment_intents where mid = new.mid and order_id = new.order_id) then
    raise exception using errcode = 'check_violation', message = 'a payment is of an order';
  end if;
  return new;
end
$$;

create function check_refund_of_service() returns trigger language plpgsql as $$
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
  -- An acquirer may send back more than was paid: that is kept, for a person.
  if new.made_by = 'merchant' then
    select coalesce(sum(amount_paise), 0) into going_back
      from public.refunds
     where mid = new.mid and order_id = new.order_id and utr = new.utr and status <> 'FAIL';
    if going_back + new.amount_paise > paid then
      raise exception using errcode = 'check_violation', message = 'more would go back than was paid';
    end if;
  end if;
  return new;
end
$$;

create trigger payments_of_service before insert on payments for each row
  when (current_user = 'upi_service')
  execute function check_payment_of_service();

create trigger payments_names_are_kept before update of acquirer_payment_id, acquirer_txn_id on payments for each row
  when (current_user = 'upi_service' and (
    new.acquirer_payment_id is distinct from coalesce(old.acquirer_payment_id, new.acquirer_payment_id)
    or new.acquirer_txn_id is distinct from coalesce(old.acquirer_txn_id, new.acquirer_txn_id)))
  execute function refuse_row('how the acquirer names a payment is kept');

create trigger refunds_success_is_final before update of status, reference, ended_at on refunds for each row
  when (old.status = 'SUCCESS' and (new.status <> old.status or new.reference <> old.reference
    or new.ended_at is distinct from old.ended_at))
  execute function refuse_row('a refund that succeeded is final');

create trigger refunds_made_by_service before insert on refunds for each row
  when (current_user = 'upi_service' and not (new.status = 'PENDING' and (new.made_by = 'merchant'
    or (new.made_by = 'acquirer' and new.acquirer_refund_id is not null and new.sent_at is null and new.due_at is null))))
  execute function refuse_row('the service makes open refunds of a merchant, or of an acquirer that has made them');

create trigger refunds_within_payment_of_service before insert on refunds for each row
  when (current_user = 'upi_service')
  execute function check_refund_of_service();

create trigger refunds_changed_by_service before update on refunds for each row
  when (current_user = 'upi_service' and (
    (old.status = 'FAIL' and new.status not in ('FAIL', 'SUCCESS'))
    or new.acquirer_refund_id is distinct from coalesce(old.acquirer_refund_id, new.acquirer_refund_id)
    or (old.sent_at is not null and new.sent_at is null
        and (new.status <> 'PENDING' or new.acquirer_refund_id is not null))
    or (new.made_by = 'acquirer' and (new.sent_at is not null or new.due_at is not null))))
  execute function refuse_row('a refund that was sent, or that has failed, is not sent again');

create trigger payment_resolutions_of_service before insert on payment_resolutions for each row
  when (current_user = 'upi_service' and new.resolved_by not in ('notification', 'enquiry', 'answer'))
  execute function refuse_row('a person ends exceptions by ops');

-- Holds only what is open: who holds the money of it.
create index refunds_open_acquirer_idx on refunds (acquirer) where status = 'PENDING';
