-- How many changes of an order its merchant could be told of. A constant default, so no row is rewritten.
alter table payment_intents add column event_sequence smallint not null default 0;

-- Where a merchant is told of changes.
create table webhook_endpoints (
  mid text not null,
  endpoint_id text not null,
  -- A 'return call' is made to the redirect_url of each paid order, and signs nothing.
  kind text not null,
  url text,
  label text,
  -- Sealed: see encryption.ts. The earlier one signs too until earlier_secret_until.
  secret bytea,
  earlier_secret bytea,
  earlier_secret_until timestamptz,
  created_at timestamptz not null,
  disabled_at timestamptz,
  disabled_reason text,
  -- Since when every delivery has failed.
  failing_since timestamptz,
  -- The instance that delivers to it, so that an endpoint never has more calls under way than one instance makes.
  leased_by text,
  leased_until timestamptz,
  constraint webhook_endpoints_pkey primary key (mid, endpoint_id),
  constraint webhook_endpoints_mid_fkey foreign key (mid) references merchants (mid),
  constraint webhook_endpoints_kind_check check (
    (kind = 'webhook' and url is not null and secret is not null) or (kind = 'return call' and url is null and secret is null)),
  constraint webhook_endpoints_disabled_check check (num_nonnulls(disabled_at, disabled_reason) in (0, 2)),
  constraint webhook_endpoints_lease_check check (num_nonnulls(leased_by, leased_until) in (0, 2))
);

-- One event for one endpoint: the event's facts, and how far its delivery is. An event is named by its order and sequence.
create table webhook_deliveries (
  mid text not null,
  endpoint_id text not null,
  order_id text not null,
  sequence smallint not null,
  type text not null,
  -- What checkPaymentStatus told from then on.
  txn_status text not null,
  utr text,
  occurred_at timestamptz not null,
  -- Of the schedule that is under way; a resent delivery begins a new one.
  attempts smallint not null default 0,
  -- When it is attempted next; null once it was delivered or given up.
  due_at timestamptz,
  delivered_at timestamptz,
  -- Of the last attempt: when it ended, the HTTP status or why there was none, and the beginning of the answer.
  attempted_at timestamptz,
  outcome text,
  answer text,
  constraint webhook_deliveries_pkey primary key (mid, endpoint_id, order_id, sequence),
  constraint webhook_deliveries_endpoint_fkey
    foreign key (mid, endpoint_id) references webhook_endpoints (mid, endpoint_id),
  constraint webhook_deliveries_intent_fkey foreign key (mid, order_id) references payment_intents (mid, order_id),
  constraint webhook_deliveries_type_check check (
    type in ('payment.succeeded', 'payment.attempt_failed', 'payment.cancelled', 'payment.expired')),
  constraint webhook_deliveries_txn_status_check check (txn_status in ('PENDING', 'SUCCESS', 'FAIL', 'REJECT'))
);

-- Holds only what waits.
create index webhook_deliveries_due_idx on webhook_deliveries (mid, endpoint_id, due_at) where due_at is not null;

-- Unpaid orders of merchants with a webhook, and when each is final: a payment.expired is written then.
create table webhook_expiries (
  mid text not null,
  order_id text not null,
  final_at timestamptz not null,
  constraint webhook_expiries_pkey primary key (mid, order_id),
  constraint webhook_expiries_intent_fkey foreign key (mid, order_id) references payment_intents (mid, order_id)
);
create index webhook_expiries_final_at_idx on webhook_expiries (final_at);

-- Orders made until this moment were looked at for webhook_expiries. One row.
create table webhook_expiry_sweep (
  swept_until timestamptz not null,
  one_row boolean not null default true,
  constraint webhook_expiry_sweep_pkey primary key (one_row),
  constraint webhook_expiry_sweep_one_row_check check (one_row)
);
insert into webhook_expiry_sweep (swept_until) values ('epoch');
