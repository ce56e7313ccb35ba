-- What reads many rows comes first and holds no lock on a table: 1.5 s for 1,000,000 payments. What locks a table follows,
-- in the order in which the service's own statements lock them: 13 ms, however many payments there are.

-- The bank's UTRs differ by more than their case; a UTR that was sent in two spellings has paid two orders. Both stay
-- paid, the second one keeps its spelling, and the operator is told of it.
do $$
declare
  paid record;
begin
  for paid in select mid, order_id, utr, amount from payment_intents where utr is not null and utr ~ '[a-z]' loop
    begin
      update payment_intents set utr = upper(utr) where mid = paid.mid and order_id = paid.order_id;
    exception when unique_violation then
      insert into payment_exceptions (mid, order_id, kind, utr, amount, received_at)
      values (paid.mid, paid.order_id, 'UTR of another order', upper(paid.utr), paid.amount, now())
      on conflict do nothing;
    end;
  end loop;
end
$$;

-- Each attempt that the bank reported as failed. An order outlives them: payment_intents.status holds the last one's word,
-- and payment_changes what came of the order. Older attempts, the first of each status, stand in payment_changes, whose
-- key is not widened for them: its index was measured to take 12 s for 1,000,000 rows, during which no payment is recorded.
create table payment_attempts (
  mid text not null,
  order_id text not null,
  status text not null,
  -- What tells one attempt from another and from its own repeats: its UTR, else its time, else nothing.
  attempt text not null,
  utr text,
  paid_at timestamptz,
  reason text not null,
  reported_at timestamptz not null,
  constraint payment_attempts_pkey primary key (mid, order_id, status, attempt),
  constraint payment_attempts_intent_fkey foreign key (mid, order_id) references payment_intents (mid, order_id),
  constraint payment_attempts_status_check check (status in ('FAIL', 'REJECT')),
  constraint payment_attempts_reason_check check (reason in ('notification', 'operator', 'sandbox'))
);

create trigger payment_attempts_append_only before update or delete or truncate on payment_attempts
  for each statement execute function refuse_to_rewrite();

-- Who typed a report of the operator, and what they want to be remembered.
alter table payment_changes
  add column told_by text,
  add column note text;

alter table payment_exceptions
  -- What was reported. Empty where nobody could read it, and where an earlier version did not keep it.
  add column status text not null default '',
  -- SHA-256 of an unreadable body, in hex: it stands in the key for the fields that could not be read.
  add column digest text not null default '',
  -- The beginning of an unreadable body.
  add column body text,
  add column told_by text,
  add column note text;

alter table payment_exceptions drop constraint payment_exceptions_pkey;
alter table payment_exceptions
  add constraint payment_exceptions_pkey primary key (mid, order_id, kind, utr, amount, status, digest);
alter table payment_exceptions drop constraint payment_exceptions_kind_check;
alter table payment_exceptions
  add constraint payment_exceptions_kind_check check (kind in (
    'unknown order', 'amount differs', 'UTR of another order', 'double payment', 'late payment',
    'failure after success', 'unreadable'));
alter table payment_exceptions
  add constraint payment_exceptions_status_check check (status in ('', 'SUCCESS', 'FAIL', 'REJECT'));
alter table payment_exceptions
  add constraint payment_exceptions_body_check check (octet_length(body) <= 2048);
