-- Orders. createPaymentIntent stores the request; payments change the status.
create table payment_intents (
  mid text not null constraint payment_intents_mid_fkey references merchants (mid),
  order_id text not null, -- Our id: 32 hex digits, not guessable.
  merchant_order_id text not null, -- The merchant's order_id; our order_id if the merchant sent none.
  amount_paise bigint not null constraint payment_intents_amount_check check (amount_paise between 100 and 50000000),
  redirect_url text not null,
  note text not null,
  customer_name text not null,
  customer_email text not null,
  customer_mobile text not null,
  -- The payee as of the order's creation: a later change of the merchant must not redirect an open payment.
  payee_vpa text not null,
  payee_name text not null,
  payee_mcc text not null,
  idempotency_key text,
  -- SHA-256 of the operation and its fields: distinguishes a retry from another request with the same key.
  idempotency_fingerprint bytea,
  created_at timestamptz not null,
  -- Expiry is not stored as a status, because it follows from this time and the clock.
  expires_at timestamptz not null,
  status text not null default 'PENDING', -- The status after the last report.
  utr text, -- payments.utr of the payment that succeeded.
  cancelled_at timestamptz, -- When the merchant cancelled the order. It stays if a late payment follows.
  -- When a response first reported the order as failed for good to its merchant; null if none has.
  failure_reported_at timestamptz,
  -- Start of a series of unreadable status responses about the order, which stays open meanwhile; null otherwise.
  unreadable_at timestamptz,
  event_sequence smallint not null default 0, -- The sequence of the order's newest webhook event.
  constraint payment_intents_pkey primary key (mid, order_id),
  constraint payment_intents_merchant_order_id_key unique (mid, merchant_order_id),
  constraint payment_intents_idempotency_check check (num_nonnulls(idempotency_key, idempotency_fingerprint) in (0, 2)),
  constraint payment_intents_status_check check (status in ('PENDING', 'SUCCESS', 'FAIL', 'REJECT', 'CANCELLED')),
  constraint payment_intents_utr_check check ((status = 'SUCCESS') = (utr is not null)),
  constraint payment_intents_cancelled_check check (status <> 'CANCELLED' or cancelled_at is not null)
) with (fillfactor = 80); -- The payment updates a row in its page, without index entries. No index contains a column that changes.

-- The QR code, the pay page and the bank send our order_id without the merchant.
create index payment_intents_order_id_idx on payment_intents (order_id);
-- Lists a merchant's orders of a period. The primary key has the same order, because an order_id begins with its time, but with few
-- merchants PostgreSQL prefers payment_intents_order_id_idx, and so reads the orders of all merchants.
create index payment_intents_mid_created_at_idx on payment_intents (mid, created_at);
-- Orders that can be paid for longer than a day. Look-ups of open orders by their creation end after a day, and find these orders
-- by this index, in the order of their creation, because an order_id begins with its time. No payment changes its columns and its
-- condition, so that it costs other orders nothing.
create index payment_intents_long_idx on payment_intents (mid, order_id, expires_at) where expires_at - created_at > interval '1 day';
-- Partial, because most orders have no idempotency key.
create unique index payment_intents_idempotency_key_key on payment_intents (mid, idempotency_key) where idempotency_key is not null;
create trigger payment_intents_created_by_service before insert on payment_intents for each row
  when (current_user = 'upi_service' and new.status <> 'PENDING') execute function refuse_row('a new order is not paid');

-- The next two triggers apply to every role: no operation reverses a payment or a cancellation.
create trigger payment_intents_payment_is_final before update of status, utr on payment_intents for each row
  when (old.status = 'SUCCESS' and (new.status <> old.status or new.utr is distinct from old.utr))
  execute function refuse_row('a paid order is final');
create trigger payment_intents_cancellation_is_final before update of cancelled_at on payment_intents for each row
  when (old.cancelled_at is not null and new.cancelled_at is distinct from old.cancelled_at)
  execute function refuse_row('an order is cancelled once');

-- A paid order needs a payment of its amount in the ledger, which contains no duplicate payments: reconciliation then reports an
-- order that the bank does not know as paid as a missing settlement. The payment may be a row of the same statement, so the trigger
-- runs after it. On Citus it runs after each part of a statement, and compares a row only with rows of the parts before.
create function check_paid_order_of_service() returns trigger language plpgsql as $$
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
create trigger payment_intents_paid_by_service after update of status, utr on payment_intents for each row
  when (current_user in ('upi_service', 'upi_console') and new.status = 'SUCCESS' and old.status <> 'SUCCESS')
  execute function check_paid_order_of_service();

-- The link that an acquirer created for an order, and the status checks at the acquirer. Orders of 'direct' have no row.
create table acquirer_intents (
  mid text not null,
  order_id text not null,
  acquirer text not null,
  -- As of the order's creation: after a change of the merchant, status checks must not read another merchant's payments.
  acquirer_merchant_id text not null,
  by_fallback boolean not null default false, -- Whether merchants.fallback_acquirer created the link.
  acquirer_order_id text not null,
  reference text not null, -- The link's parameter tr.
  link text not null,
  -- Number of started status checks. The code knows each acquirer's limit.
  status_checks smallint not null constraint acquirer_intents_status_checks_check check (status_checks >= 0),
  status_check_at timestamptz, -- The next status check; null if none follows.
  -- The last status check. The acquirer's pause before the next one starts here.
  status_checked_at timestamptz,
  constraint acquirer_intents_pkey primary key (mid, order_id),
  constraint acquirer_intents_intent_fkey foreign key (mid, order_id) references payment_intents (mid, order_id)
);

-- Daily transaction reports identify an order by it.
create index acquirer_intents_reference_idx on acquirer_intents (reference);
-- Find pending status checks: of all merchants in one statement, and of one merchant, so that a long queue of one delays no other.
create index acquirer_intents_status_check_at_idx on acquirer_intents (status_check_at, acquirer, mid)
  where status_check_at is not null;
create index acquirer_intents_mid_acquirer_status_check_at_idx on acquirer_intents (mid, acquirer, status_check_at)
  where status_check_at is not null;
-- Counts the status checks of the last minute, which an acquirer limits for the whole acquirer account.
create index acquirer_intents_acquirer_status_checked_at_idx on acquirer_intents (acquirer, status_checked_at)
  where status_checked_at is not null;
create index acquirer_intents_by_fallback_idx on acquirer_intents (mid, order_id) where by_fallback;

-- Every order changes these rows. By default, autovacuum waits until a fifth of the rows are dead: 20 million of 100 million.
alter table payment_intents set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
alter table acquirer_intents set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- A link pays the payee of its order, which the service cannot change. Links of acquirers' sandboxes have no payee, and begin with
-- https. An order of a merchant without an acquirer has no link.
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
create trigger acquirer_intents_of_service before insert on acquirer_intents for each row
  when (current_user = 'upi_service') execute function check_link_of_service();

-- Successful payments. The primary key guarantees that one UTR belongs to one order of a merchant. No foreign key, because its
-- check would lock every order.
create table payments (
  mid text not null,
  -- In upper case. The acquirer's payment id if the bank's reference is unknown or belongs to another payment of the merchant.
  -- Byte order, independent of the server's locale.
  utr text collate "C" not null,
  order_id text not null,
  amount_paise bigint not null,
  -- 'first' paid the order in time, 'late' after it was closed; 'second' is a duplicate payment.
  kind text not null constraint payments_kind_check check (kind in ('first', 'late', 'second')),
  paid_at timestamptz, -- When the money moved, according to the bank; null if the bank did not report it.
  received_at timestamptz not null,
  acquirer text not null,
  acquirer_payment_id text, -- The acquirer's ids, by which refunds refer to the payment.
  acquirer_txn_id text,
  -- The bank's reference of a payment whose utr is the acquirer's payment id; null until it is known.
  bank_reference text collate "C",
  bank_reference_at timestamptz, -- When a later report added bank_reference; null if none did.
  learned_at timestamptz, -- When a later report last added one of these identifiers or the instrument; null if none did.
  instrument text constraint payments_instrument_check check (instrument in ('bank account', 'credit card', 'wallet', 'credit line')),
  source text not null,
  reported_by text, -- The operator who reported it; null for reports of the service.
  note text,
  constraint payments_pkey primary key (mid, utr),
  constraint payments_source_check check (source in ('notification', 'enquiry', 'day file', 'operator', 'sandbox'))
);

-- Finds a UTR that has paid orders of two merchants, and the payment that a report of an unknown order is about.
create index payments_utr_idx on payments (utr);
create index payments_bank_reference_idx on payments (bank_reference, mid) where bank_reference is not null;
-- A report may contain the acquirer's id of a payment as its UTR.
create index payments_acquirer_payment_id_utr_idx on payments (upper(right(translate(acquirer_payment_id, '_-', ''), 35)))
  where acquirer_payment_id is not null;
-- A settlement file, or the acquirer's list of payments, may identify a payment by the acquirer's id.
create index payments_acquirer_payment_id_idx on payments (acquirer_payment_id) where acquirer_payment_id is not null;
-- Finds the references that reports have added since the last settlement import.
create index payments_bank_reference_at_idx on payments (bank_reference_at) where bank_reference_at is not null;
-- Lists payments of a period: by the bank's time, else by the time of the report.
create index payments_paid_idx on payments (mid, (coalesce(paid_at, received_at)), utr);
-- The order's own payment is found by payment_intents.utr.
create index payments_second_idx on payments (mid, order_id) where kind = 'second';
-- Finds payments received after a moment. Without autosummarize each query would also read all payments since the last vacuum.
create index payments_received_at_idx on payments using brin (received_at) with (autosummarize = on);
create index payments_learned_at_idx on payments (learned_at) where learned_at is not null;

-- The acquirer's ids, the bank's reference and the instrument may arrive later, once.
create trigger payments_append_only
  before update of mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source, reported_by, note
      or delete or truncate on payments for each statement execute function refuse_to_rewrite();
create trigger payments_bank_reference_is_kept before update of bank_reference, bank_reference_at on payments for each row
  when (new.bank_reference is distinct from coalesce(old.bank_reference, new.bank_reference)
    or new.bank_reference_at is distinct from coalesce(old.bank_reference_at, new.bank_reference_at))
  execute function refuse_row('the bank reference of a payment is set once');
create trigger payments_instrument_is_kept before update of instrument on payments for each row
  when (new.instrument is distinct from coalesce(old.instrument, new.instrument))
  execute function refuse_row('the instrument of a payment is set once');
create trigger payments_names_are_kept before update of acquirer_payment_id, acquirer_txn_id on payments for each row
  when (current_user in ('upi_service', 'upi_console') and (
    new.acquirer_payment_id is distinct from coalesce(old.acquirer_payment_id, new.acquirer_payment_id)
    or new.acquirer_txn_id is distinct from coalesce(old.acquirer_txn_id, new.acquirer_txn_id)))
  execute function refuse_row('how the acquirer names a payment is kept');
create trigger payments_without_operator before insert on payments for each row
  when (current_user = 'upi_service' and (new.reported_by is not null or new.source in ('operator', 'day file')))
  execute function refuse_row('an operator reports payments by ops');

create function check_payment_of_service() returns trigger language plpgsql as $$
begin
  if not exists (select from public.payment_intents where mid = new.mid and order_id = new.order_id) then
    raise exception using errcode = 'check_violation', message = 'a payment is of an order';
  end if;
  return new;
end
$$;
create trigger payments_of_service before insert on payments for each row
  when (current_user in ('upi_service', 'upi_console')) execute function check_payment_of_service();

-- Failed attempts to pay. The order stays open; payment_intents.status has the status of the last attempt.
create table payment_attempts (
  mid text not null,
  order_id text not null,
  status text not null constraint payment_attempts_status_check check (status in ('FAIL', 'REJECT')),
  -- Distinguishes an attempt from other attempts and from its own repeats: its UTR and its time, each if known.
  attempt text not null,
  utr text,
  paid_at timestamptz,
  source text not null,
  received_at timestamptz not null,
  failure_reason text, -- Null until reported.
  -- The bank's code of the reason.
  failure_code text constraint payment_attempts_failure_code_check check (failure_code ~ '^[!-~]{1,64}$'),
  constraint payment_attempts_pkey primary key (mid, order_id, status, attempt),
  constraint payment_attempts_intent_fkey foreign key (mid, order_id) references payment_intents (mid, order_id),
  constraint payment_attempts_source_check check (source in ('notification', 'enquiry', 'day file', 'operator', 'sandbox'))
);

-- The reason and its code may be reported later, once.
create trigger payment_attempts_append_only
  before update of mid, order_id, status, attempt, utr, paid_at, source, received_at or delete or truncate on payment_attempts
  for each statement execute function refuse_to_rewrite();
create trigger payment_attempts_failure_is_kept before update of failure_reason, failure_code on payment_attempts for each row
  when (old.failure_reason is not null) execute function refuse_row('why an attempt failed is kept');
create trigger payment_attempts_without_operator before insert on payment_attempts for each row
  when (current_user = 'upi_service' and new.source in ('operator', 'day file'))
  execute function refuse_row('an operator reports payments by ops');

-- Reports that the operator has to check, such as rejected notifications and duplicate payments. Append-only. The primary key
-- contains all facts, so that repeats of a report are one row.
create table payment_exceptions (
  mid text not null, -- Empty if the order is unknown.
  order_id text not null,
  kind text not null,
  utr text not null,
  amount_paise bigint not null,
  -- The reported status; empty if it is unreadable.
  status text not null default '' constraint payment_exceptions_status_check check (status in ('', 'SUCCESS', 'FAIL', 'REJECT')),
  our_refund_id text not null default '', -- The refund that the exception is about; empty for others.
  -- Distinguishes exceptions whose other facts are equal: the SHA-256 of an unreadable body in hex, the time of an unreadable
  -- status, the acquirer's id of a refund that is not stored, or the id of a dispute.
  dedup_key text not null default '',
  -- 48 bits of a hash of the primary key: the same facts have the same id wherever they are stored.
  exception_id text generated always as (
    left(lpad(to_hex(hashtextextended(
      mid || '|' || order_id || '|' || kind || '|' || utr || '|' || amount_paise || '|' || status || '|'
        || our_refund_id || dedup_key, 0)), 16, '0'), 12)) stored,
  paid_at timestamptz,
  received_at timestamptz not null,
  -- The acquirer account that sent the notification, such as `setu:acme` or `direct`; null for other sources.
  acquirer_account text,
  -- The beginning of an unreadable body.
  body text constraint payment_exceptions_body_check check (octet_length(body) <= 2048),
  reported_by text, -- A source of the service, or the operator's name.
  note text,
  constraint payment_exceptions_pkey primary key (mid, order_id, kind, utr, amount_paise, status, our_refund_id, dedup_key),
  constraint payment_exceptions_kind_check check (kind in (
    'unknown order', 'amount differs', 'UTR of another order', 'UTR of another merchant', 'double payment', 'late payment',
    'failure after success', 'unreadable', 'refund unsure', 'refund without an end', 'refund failed after success',
    'refunded above what was paid', 'refund differs', 'unknown dispute', 'dispute differs',
    'refund of a disputed payment'))
);
create index payment_exceptions_exception_id_idx on payment_exceptions (mid, exception_id);
-- Finds the exceptions that a payment resolves.
create index payment_exceptions_unknown_order_idx on payment_exceptions (mid, utr) where kind = 'unknown order';
-- Counts the open exceptions of one acquirer account and kind: its ids are in the order of the primary key of payment_resolutions.
create index payment_exceptions_acquirer_account_idx on payment_exceptions (mid, acquirer_account, kind, exception_id)
  where acquirer_account is not null;
create trigger payment_exceptions_append_only before update or delete or truncate on payment_exceptions
  for each statement execute function refuse_to_rewrite();
create trigger payment_exceptions_without_operator before insert on payment_exceptions for each row
  when (current_user = 'upi_service' and new.reported_by not in ('notification', 'enquiry', 'answer'))
  execute function refuse_row('an operator reports exceptions by ops');

-- How an exception was resolved. The first resolution is final. Append-only.
create table payment_resolutions (
  mid text not null, -- As in payment_exceptions.
  exception_id text not null,
  reason text not null,
  resolved_by text not null,
  resolved_at timestamptz not null,
  order_id text, -- The order whose payment an exception 'unknown order' reported; null for other resolutions.
  constraint payment_resolutions_pkey primary key (mid, exception_id)
);
create trigger payment_resolutions_append_only before update or delete or truncate on payment_resolutions
  for each statement execute function refuse_to_rewrite();

-- The service resolves exceptions of refunds, of orders that the merchant cancels, and of unknown orders whose payment is stored.
create trigger payment_resolutions_of_service before insert on payment_resolutions for each row
  when (current_user = 'upi_service' and new.resolved_by not in ('notification', 'enquiry', 'answer', 'merchant', 'sandbox'))
  execute function refuse_row('a person ends exceptions by ops');
