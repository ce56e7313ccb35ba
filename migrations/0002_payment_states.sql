-- What became of an intent. Expiry is not stored: it follows from expires_at and the clock.
alter table payment_intents
  add column status text not null default 'PENDING',
  -- Unique transaction reference of the payment that succeeded.
  add column utr text,
  add column idempotency_key text,
  -- SHA-256 of the operation and its fields: tells a retry from another request under the same key.
  add column idempotency_fingerprint bytea,
  add constraint payment_intents_status_check check (status in ('PENDING', 'SUCCESS', 'FAIL', 'REJECT')),
  add constraint payment_intents_utr_check check ((status = 'SUCCESS') = (utr is not null)),
  add constraint payment_intents_idempotency_check check (num_nonnulls(idempotency_key, idempotency_fingerprint) in (0, 2));

-- Only rows that have one: most intents are made without a key, and all of them without a UTR.
create unique index payment_intents_utr_key on payment_intents (mid, utr) where utr is not null;
create unique index payment_intents_idempotency_key_key on payment_intents (mid, idempotency_key)
  where idempotency_key is not null;

-- Each change of an intent's status, at most one to each: a status is never left for one that it had before.
create table payment_changes (
  mid text not null,
  order_id text not null,
  status text not null,
  utr text,
  -- When the bank says that it happened.
  paid_at timestamptz,
  -- Who told us: the acquirer's notification, the operator's hand, or the control of the sandbox's pay page.
  reason text not null,
  changed_at timestamptz not null,
  constraint payment_changes_pkey primary key (mid, order_id, status),
  constraint payment_changes_intent_fkey foreign key (mid, order_id) references payment_intents (mid, order_id),
  constraint payment_changes_status_check check (status in ('SUCCESS', 'FAIL', 'REJECT')),
  constraint payment_changes_reason_check check (reason in ('notification', 'operator', 'sandbox'))
);

-- What the operator has to look into: notifications that were refused, and second payments of one order. Append-only.
-- Its key is the whole fact, so that the bank's repeats of one are one row.
create table payment_exceptions (
  -- Empty where no intent is known.
  mid text not null,
  order_id text not null,
  kind text not null,
  utr text not null,
  amount numeric(14, 2) not null,
  paid_at timestamptz,
  received_at timestamptz not null,
  constraint payment_exceptions_pkey primary key (mid, order_id, kind, utr, amount),
  constraint payment_exceptions_kind_check
    check (kind in ('unknown order', 'amount differs', 'UTR of another order', 'double payment'))
);

create function refuse_to_rewrite() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name;
end
$$;

create trigger payment_exceptions_append_only before update or delete or truncate on payment_exceptions
  for each statement execute function refuse_to_rewrite();
create trigger payment_changes_append_only before update or delete or truncate on payment_changes
  for each statement execute function refuse_to_rewrite();
