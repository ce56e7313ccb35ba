alter table access_keys add column may_refund boolean not null default false;

-- How the acquirer names a payment, where it does: it is asked for by these when the payment is refunded.
alter table payments
  add column acquirer_payment_id text,
  add column acquirer_txn_id text;
-- All else of a payment stays append-only.
drop trigger payments_append_only on payments;
create trigger payments_append_only
  before update of mid, utr, order_id, amount_paise, paid_at, heard_at, kind, acquirer or delete or truncate on payments
  for each statement execute function refuse_to_rewrite();

-- Money that goes back to a customer. Stored before anybody is asked to send it.
create table refunds (
  mid text not null,
  -- The merchant's own name for it; our_refund_id where the operator made it.
  refund_id text not null,
  -- Made by the service, at most 35 letters and digits.
  our_refund_id text not null,
  order_id text not null,
  -- The payment that is refunded: an order may have been paid twice.
  utr text collate "C" not null,
  amount_paise integer not null,
  -- What was asked for; null for all that was left. A repeat is compared with it.
  asked_paise integer,
  note text not null,
  -- The exception that ends with this refund.
  exception_id text,
  -- Who holds the money; as it was when the order was made.
  acquirer text not null,
  acquirer_merchant_id text,
  -- merchant, acquirer (its own automatic refund), or the operator's name.
  made_by text not null,
  made_at timestamptz not null,
  status text not null,
  -- The bank's reference; empty until it is known.
  reference text not null default '',
  -- Why it has failed, or what is unsure.
  reason text,
  ended_at timestamptz,
  acquirer_refund_id text,
  -- When it was marked as sent, before a byte left.
  sent_at timestamptz,
  -- How often it was asked about, or sent, since then.
  attempts smallint not null default 0,
  -- When the service has to do something for it next; null when nothing.
  due_at timestamptz,
  constraint refunds_pkey primary key (mid, refund_id),
  constraint refunds_our_refund_id_key unique (mid, our_refund_id),
  constraint refunds_refund_id_check check (refund_id ~ '^[A-Za-z0-9_-]+$' and octet_length(refund_id) <= 40),
  constraint refunds_our_refund_id_check check (our_refund_id ~ '^[A-Za-z0-9]+$' and octet_length(our_refund_id) <= 35),
  constraint refunds_amount_check check (amount_paise > 0),
  constraint refunds_status_check check (status in ('PENDING', 'SUCCESS', 'FAIL')),
  constraint refunds_ended_check check ((status = 'PENDING') = (ended_at is null))
);

create index refunds_mid_order_id_idx on refunds (mid, order_id);
-- An acquirer names a refund by it.
create index refunds_our_refund_id_idx on refunds (our_refund_id);
-- Holds only what waits.
create index refunds_due_at_idx on refunds (due_at) where due_at is not null;
-- Holds only what is open: for the operator.
create index refunds_open_idx on refunds (made_at) where status = 'PENDING';
-- What went back on a day.
create index refunds_mid_ended_at_idx on refunds (mid, ended_at) where status = 'SUCCESS';

-- The refund that an event tells of.
alter table webhook_deliveries add column our_refund_id text;
alter table webhook_deliveries drop constraint webhook_deliveries_type_check;
alter table webhook_deliveries
  add constraint webhook_deliveries_type_check check (
    type in ('payment.succeeded', 'payment.attempt_failed', 'payment.cancelled', 'payment.expired', 'refund.succeeded',
             'refund.failed')) not valid;

alter table payment_exceptions drop constraint payment_exceptions_kind_check;
alter table payment_exceptions
  add constraint payment_exceptions_kind_check check (kind in (
    'unknown order', 'amount differs', 'UTR of another order', 'UTR of another merchant', 'double payment', 'late payment',
    'failure after success', 'unreadable', 'refund unsure', 'refund without an end', 'refund failed after success',
    'refunded above what was paid', 'refund differs'));

-- Holds only what the bank has deducted, which may be a refund.
create index settlements_deductions_idx on settlements (mid) where amount < 0;
