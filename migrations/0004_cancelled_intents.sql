-- A merchant may close an intent. Older rows satisfied narrower checks, so the new ones need not read them again: the
-- tables are locked for milliseconds, however many rows there are.
alter table payment_intents drop constraint payment_intents_status_check;
alter table payment_intents
  add constraint payment_intents_status_check
  check (status in ('PENDING', 'SUCCESS', 'FAIL', 'REJECT', 'CANCELLED')) not valid;

alter table payment_changes drop constraint payment_changes_status_check;
alter table payment_changes
  add constraint payment_changes_status_check check (status in ('SUCCESS', 'FAIL', 'REJECT', 'CANCELLED')) not valid;

alter table payment_changes drop constraint payment_changes_reason_check;
alter table payment_changes
  add constraint payment_changes_reason_check
  check (reason in ('notification', 'operator', 'sandbox', 'merchant')) not valid;
