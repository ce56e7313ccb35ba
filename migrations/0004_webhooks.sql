-- Where a merchant receives events.
create table webhook_endpoints (
  mid text not null constraint webhook_endpoints_mid_fkey references merchants (mid),
  endpoint_id text not null,
  kind text not null, -- A 'return call' is sent to the redirect_url of each paid order, and is not signed.
  url text,
  label text,
  secret bytea, -- Encrypted: see encryption.ts. The earlier one signs too until earlier_secret_until.
  earlier_secret bytea,
  earlier_secret_until timestamptz,
  created_at timestamptz not null,
  disabled_at timestamptz,
  disabled_reason text,
  failing_since timestamptz, -- The start of an uninterrupted series of failed deliveries.
  constraint webhook_endpoints_pkey primary key (mid, endpoint_id),
  constraint webhook_endpoints_kind_check check (
    (kind = 'webhook' and url is not null and secret is not null) or (kind = 'return call' and url is null and secret is null)),
  constraint webhook_endpoints_disabled_check check (num_nonnulls(disabled_at, disabled_reason) in (0, 2))
);

-- The service disables endpoints that fail; only an operator enables them again.
create trigger webhook_endpoints_switched_by_service before update of disabled_at, disabled_reason on webhook_endpoints for each row
  when (current_user = 'upi_service'
    and (new.disabled_at, new.disabled_reason) is distinct from (old.disabled_at, old.disabled_reason)
    and (old.disabled_at is not null or new.disabled_reason = 'operator'))
  execute function refuse_row('an operator switches endpoints on and off by ops');

-- An event for one endpoint, and the progress of its delivery. An order and a sequence identify the event.
create table webhook_deliveries (
  mid text not null,
  endpoint_id text not null,
  order_id text not null,
  sequence smallint not null,
  type text not null,
  txn_status text not null, -- What checkPaymentStatus returned from then on.
  utr text,
  our_refund_id text, -- The refund of a refund event.
  failure_reason text, -- Stored, so that every attempt sends the same bytes.
  data text, -- The whole data of a dispute event as JSON, whose facts may change before the delivery.
  occurred_at timestamptz not null,
  attempts smallint not null default 0, -- Attempts of the current schedule; a redelivery starts a new one.
  due_at timestamptz, -- The next attempt; null after success or the last attempt.
  delivered_at timestamptz,
  -- The end of the last attempt, its HTTP status or why there was none, and the beginning of the response.
  attempted_at timestamptz,
  outcome text,
  response text,
  constraint webhook_deliveries_pkey primary key (mid, endpoint_id, order_id, sequence),
  constraint webhook_deliveries_endpoint_fkey
    foreign key (mid, endpoint_id) references webhook_endpoints (mid, endpoint_id),
  constraint webhook_deliveries_intent_fkey foreign key (mid, order_id) references payment_intents (mid, order_id),
  constraint webhook_deliveries_type_check check (
    type in ('payment.succeeded', 'payment.attempt_failed', 'payment.cancelled', 'payment.expired', 'refund.succeeded',
             'refund.failed', 'dispute.opened', 'dispute.updated')),
  constraint webhook_deliveries_data_check check ((type like 'dispute.%') = (data is not null)),
  constraint webhook_deliveries_txn_status_check check (txn_status in ('PENDING', 'SUCCESS', 'FAIL', 'REJECT'))
);
create index webhook_deliveries_due_idx on webhook_deliveries (mid, endpoint_id, due_at) where due_at is not null;
-- Abandoned return-URL callbacks, which are few.
create index webhook_deliveries_given_up_idx on webhook_deliveries (attempted_at)
  where endpoint_id = 'return-call' and due_at is null and delivered_at is null;
-- New deliveries reuse the space of deliveries that `ops webhooks prune` deleted, but only after a vacuum.
alter table webhook_deliveries set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- Merchants trust a signed event, so its order, refund or dispute must have the status that it reports. The status may be a change
-- of the same statement, so the trigger runs after it.
create function check_event_of_service() returns trigger language plpgsql as $$
begin
  if new.type in ('refund.succeeded', 'refund.failed') then
    perform from public.current_refunds
      where mid = new.mid and our_refund_id = new.our_refund_id and order_id = new.order_id and reference = new.utr
        and status = new.txn_status and status = case new.type when 'refund.succeeded' then 'SUCCESS' else 'FAIL' end;
  elsif new.type like 'dispute.%' then
    perform from public.disputes
      where mid = new.mid and order_id = new.order_id and utr = new.utr and dispute_id = new.data::json ->> 'dispute_id'
        and upper(replace(status, ' ', '_')) = new.data::json ->> 'status' and new.txn_status = 'SUCCESS';
  elsif new.type = 'payment.succeeded' then
    perform from public.payment_intents
      where mid = new.mid and order_id = new.order_id and status = 'SUCCESS' and utr = new.utr and new.txn_status = 'SUCCESS';
  else
    perform from public.payment_intents
      where mid = new.mid and order_id = new.order_id and status <> 'SUCCESS' and new.txn_status <> 'SUCCESS';
  end if;
  if not found then
    raise exception using errcode = 'check_violation', message = 'an event is a status of its order, refund or dispute';
  end if;
  return null;
end
$$;
create trigger webhook_deliveries_of_service after insert on webhook_deliveries for each row
  when (current_user in ('upi_service', 'upi_console')) execute function check_event_of_service();

-- Unpaid orders of merchants with a webhook, and the time at which the service stores their payment.expired.
create table webhook_expiries (
  mid text not null,
  order_id text not null,
  final_at timestamptz not null,
  constraint webhook_expiries_pkey primary key (mid, order_id),
  constraint webhook_expiries_intent_fkey foreign key (mid, order_id) references payment_intents (mid, order_id)
);
create index webhook_expiries_final_at_idx on webhook_expiries (final_at);
