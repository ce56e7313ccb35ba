-- Refunds. Each is stored before the service sends it to an acquirer.
create table refunds (
  mid text not null,
  -- The merchant's id; our_refund_id for refunds that an operator or the acquirer created.
  refund_id text not null,
  our_refund_id text not null,
  order_id text not null,
  utr text collate "C" not null, -- The payment that is refunded: an order may have duplicate payments.
  amount_paise bigint not null constraint refunds_amount_check check (amount_paise > 0),
  requested_paise bigint, -- The requested amount, which a retry must repeat; null for all that was left.
  note text not null,
  exception_id text, -- The exception that this refund resolves.
  acquirer text not null, -- The acquirer that received the payment, as of the order's creation.
  acquirer_merchant_id text,
  created_by text not null, -- merchant, acquirer (its own automatic refund), or the operator's name.
  created_at timestamptz not null,
  status text not null constraint refunds_status_check check (status in ('PENDING', 'SUCCESS', 'FAIL')),
  reference text not null default '', -- The bank's reference; empty until it is known.
  reason text, -- Why it failed, or what is uncertain.
  ended_at timestamptz,
  acquirer_refund_id text, -- Null until the acquirer returns its id, which may be after accepted_at.
  sent_at timestamptz, -- Written before the first byte is sent.
  accepted_at timestamptz, -- When the acquirer first reported the pending refund, which is never sent again.
  attempts smallint not null default 0, -- Number of attempts to send it, and of status checks, after sent_at.
  due_at timestamptz, -- When the service sends it or checks its status next; null if it does neither.
  constraint refunds_pkey primary key (mid, refund_id),
  constraint refunds_our_refund_id_key unique (mid, our_refund_id),
  constraint refunds_refund_id_check check (refund_id ~ '^[A-Za-z0-9_-]+$' and octet_length(refund_id) <= 40),
  constraint refunds_our_refund_id_check check (our_refund_id ~ '^[A-Za-z0-9]+$' and octet_length(our_refund_id) <= 35),
  constraint refunds_ended_check check ((status = 'PENDING') = (ended_at is null))
);
create index refunds_mid_order_id_idx on refunds (mid, order_id);
create index refunds_mid_created_at_idx on refunds (mid, created_at);
-- Acquirers send our_refund_id without the merchant.
create index refunds_our_refund_id_idx on refunds (our_refund_id);
-- Find pending refunds: of all merchants in one statement, and of one merchant, so that a long queue of one delays no other.
create index refunds_due_at_idx on refunds (due_at, acquirer, mid) where due_at is not null;
create index refunds_mid_acquirer_due_at_idx on refunds (mid, acquirer, due_at) where due_at is not null;
-- Open refunds, for the operator: by age, and by the acquirer that has the money.
create index refunds_open_idx on refunds (created_at) where status = 'PENDING';
create index refunds_open_acquirer_idx on refunds (acquirer) where status = 'PENDING';
-- Refunds of a day, for the ledger.
create index refunds_mid_ended_at_idx on refunds (mid, ended_at) where status = 'SUCCESS';

-- Applies to every role.
create trigger refunds_success_is_final before update of status, reference, ended_at on refunds for each row
  when (old.status = 'SUCCESS' and (new.status <> old.status or new.reference <> old.reference
    or new.ended_at is distinct from old.ended_at))
  execute function refuse_row('a refund that succeeded is final');
create trigger refunds_created_open before insert on refunds for each row
  when (current_user in ('upi_service', 'upi_console') and not (new.status = 'PENDING' and (new.created_by <> 'acquirer'
    or (new.accepted_at is not null and new.sent_at is null and new.due_at is null))))
  execute function refuse_row('a new refund is open, and an acquirer has accepted its own');
create trigger refunds_created_by_service before insert on refunds for each row
  when (current_user = 'upi_service' and new.created_by not in ('merchant', 'acquirer'))
  execute function refuse_row('an operator creates refunds by ops');
create trigger refunds_changed_by_service before update on refunds for each row
  when (current_user in ('upi_service', 'upi_console') and (
    (old.status = 'FAIL' and new.status not in ('FAIL', 'SUCCESS'))
    or new.acquirer_refund_id is distinct from coalesce(old.acquirer_refund_id, new.acquirer_refund_id)
    or new.accepted_at is distinct from coalesce(old.accepted_at, new.accepted_at)
    or (old.sent_at is not null and new.sent_at is null and (new.status <> 'PENDING' or new.accepted_at is not null))
    or (new.created_by = 'acquirer' and (new.sent_at is not null or new.due_at is not null))))
  execute function refuse_row('a refund that was sent, or that has failed, is not sent again');

-- Refunds of `direct` that succeeded, whose money the bank then returned, such as from a closed account. Append-only.
create table refund_returns (
  mid text not null,
  our_refund_id text not null,
  reference text not null, -- The bank's reference for the return.
  reason text not null,
  returned_by text not null,
  returned_at timestamptz not null,
  constraint refund_returns_pkey primary key (mid, our_refund_id)
);
create index refund_returns_mid_returned_at_idx on refund_returns (mid, returned_at);
create trigger refund_returns_append_only before update or delete or truncate on refund_returns
  for each statement execute function refuse_to_rewrite();

-- Otherwise the amount of a refund that is still on its way could be refunded again.
create function check_return() returns trigger language plpgsql as $$
begin
  if not exists (
    select from public.refunds
     where mid = new.mid and our_refund_id = new.our_refund_id and acquirer = 'direct' and status = 'SUCCESS'
  ) then
    raise exception using errcode = 'check_violation', message = 'a returned refund is a successful refund of direct';
  end if;
  return new;
end
$$;
create trigger refund_returns_of_success before insert on refund_returns for each row
  when (current_user = 'upi_console') execute function check_return();

-- Refunds with their current status: a returned refund has failed, since its return.
create view current_refunds as
select r.mid, r.refund_id, r.our_refund_id, r.order_id, r.utr, r.amount_paise, r.requested_paise, r.note, r.exception_id, r.acquirer,
       r.acquirer_merchant_id, r.created_by, r.created_at, case when t.mid is null then r.status else 'FAIL' end as status,
       r.reference, coalesce(t.reason, r.reason) as reason, coalesce(t.returned_at, r.ended_at) as ended_at,
       r.acquirer_refund_id, r.sent_at, r.accepted_at, r.attempts, r.due_at, t.reference as return_reference, t.returned_by,
       t.returned_at, case when t.mid is not null then r.ended_at end as succeeded_at
  from refunds r
  left join refund_returns t on t.mid = r.mid and t.our_refund_id = r.our_refund_id;

-- Disputes of payments, such as chargebacks. What the acquirer did not report is null.
create table disputes (
  mid text not null,
  acquirer text not null, -- The acquirer account that received the payment.
  dispute_id text not null constraint disputes_dispute_id_check check (dispute_id ~ '^[A-Za-z0-9_-]{1,64}$'),
  order_id text not null,
  utr text collate "C" not null, -- payments.utr of the disputed payment.
  amount_paise bigint constraint disputes_amount_check check (amount_paise > 0),
  kind text, -- The acquirer's word, such as CHARGEBACK.
  reason_code text,
  reason_text text,
  respond_by timestamptz,
  opened_at timestamptz not null, -- According to the acquirer, else recorded_at.
  recorded_at timestamptz not null,
  -- The time of the newest report that set the amount, the time to respond by and the reason.
  reported_at timestamptz not null,
  -- The state according to dispute_states, and since when.
  status text not null
    constraint disputes_status_check check (status in ('open', 'under review', 'won', 'lost', 'accepted', 'closed')),
  updated_at timestamptz not null,
  check_at timestamptz, -- The next status check; null if none follows.
  constraint disputes_pkey primary key (mid, acquirer, dispute_id)
);
create index disputes_mid_utr_idx on disputes (mid, utr);
create index disputes_mid_opened_at_idx on disputes (mid, opened_at, dispute_id);
-- Disputes that await a response, and pending status checks of all merchants and of one.
create index disputes_open_idx on disputes (respond_by) where status = 'open';
create index disputes_check_at_idx on disputes (check_at, acquirer, mid) where check_at is not null;
create index disputes_mid_acquirer_check_at_idx on disputes (mid, acquirer, check_at) where check_at is not null;
create trigger disputes_facts_are_kept before update of mid, acquirer, dispute_id, order_id, utr, opened_at, recorded_at
  or delete or truncate on disputes for each statement execute function refuse_to_rewrite();
-- Otherwise the amount of a lost dispute could be refunded. Operators set an unknown amount, which stands for the whole payment.
create trigger disputes_verdict_is_final before update of status, amount_paise on disputes for each row
  when (old.status in ('won', 'lost', 'accepted', 'closed') and (new.status <> old.status
    or (new.amount_paise is distinct from old.amount_paise and (old.amount_paise is not null or current_user = 'upi_service'))))
  execute function refuse_row('the first verdict on a dispute, and its amount, are final');

-- The reported states of each dispute. Append-only. The first final state stays.
create table dispute_states (
  mid text not null,
  acquirer text not null,
  dispute_id text not null,
  status text not null
    constraint dispute_states_status_check check (status in ('open', 'under review', 'won', 'lost', 'accepted', 'closed')),
  stated_at timestamptz not null, -- The acquirer's time of the state; -infinity if it reported none.
  recorded_at timestamptz not null,
  reported_by text not null, -- A source of the service, or the operator's name.
  constraint dispute_states_pkey primary key (mid, acquirer, dispute_id, status, stated_at)
);
create unique index dispute_states_final_key on dispute_states (mid, acquirer, dispute_id)
  where status in ('won', 'lost', 'accepted', 'closed');
create trigger dispute_states_append_only before update or delete or truncate on dispute_states
  for each statement execute function refuse_to_rewrite();
create trigger dispute_states_without_operator before insert on dispute_states for each row
  when (current_user = 'upi_service' and new.reported_by not in ('notification', 'enquiry'))
  execute function refuse_row('an operator reports disputes by ops');

create function check_dispute_of_service() returns trigger language plpgsql as $$
begin
  if not exists (
    select from public.payments where mid = new.mid and utr = new.utr and order_id = new.order_id and acquirer = new.acquirer
  ) then
    raise exception using errcode = 'check_violation', message = 'a dispute is of a payment through its acquirer account';
  end if;
  return new;
end
$$;
create trigger disputes_of_service before insert on disputes for each row
  when (current_user in ('upi_service', 'upi_console')) execute function check_dispute_of_service();

-- Amounts that have left a payment, or are about to: its refunds that did not fail, and its lost and accepted disputes.
create view returned_amounts as
select mid, order_id, utr, amount_paise, status = 'SUCCESS' as is_final
  from current_refunds
 where status <> 'FAIL'
 union all
select d.mid, d.order_id, d.utr, coalesce(d.amount_paise, p.amount_paise), true
  from disputes d
  join payments p on p.mid = d.mid and p.utr = d.utr
 where d.status in ('lost', 'accepted');

-- New refunds of a payment never exceed what its refunds and lost disputes have left. Locks the order, so that concurrent refunds
-- are checked one after the other.
create function check_refund_of_service() returns trigger language plpgsql as $$
declare
  paid bigint;
  going_back bigint;
begin
  -- In a stricter isolation level the snapshot lacks what other transactions have stored in the meantime.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'check_violation', message = 'a refund is made in read committed';
  end if;
  perform from public.payment_intents where mid = new.mid and order_id = new.order_id for no key update;
  select amount_paise into paid from public.payments where mid = new.mid and order_id = new.order_id and utr = new.utr;
  if not found then
    raise exception using errcode = 'check_violation', message = 'a refund is of a payment';
  end if;
  select coalesce(sum(amount_paise), 0)::bigint into going_back
    from public.returned_amounts
   where mid = new.mid and order_id = new.order_id and utr = new.utr;
  if going_back + new.amount_paise > paid then
    raise exception using errcode = 'check_violation', message = 'more would go back than was paid';
  end if;
  return new;
end
$$;
create trigger refunds_within_payment_of_service before insert on refunds for each row
  when (current_user in ('upi_service', 'upi_console')) execute function check_refund_of_service();
