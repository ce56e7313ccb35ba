-- Why an attempt failed, and the code of the bank; null until somebody has said so.
alter table payment_attempts
  add column failure_reason text,
  add column failure_code text;
alter table payment_attempts
  add constraint payment_attempts_failure_code_check check (failure_code ~ '^[!-~]{1,64}$') not valid;

-- Both may be told later, once. All else of an attempt stays append-only.
drop trigger payment_attempts_append_only on payment_attempts;
create trigger payment_attempts_append_only
  before update of mid, order_id, status, attempt, utr, paid_at, reason, reported_at or delete or truncate on payment_attempts
  for each statement execute function refuse_to_rewrite();
create trigger payment_attempts_failure_is_kept before update of failure_reason, failure_code on payment_attempts for each row
  when (old.failure_reason is not null)
  execute function refuse_row('why an attempt failed is kept');

-- The reason that an event tells, so that every attempt to deliver the event sends the same bytes.
alter table webhook_deliveries add column failure_reason text;
