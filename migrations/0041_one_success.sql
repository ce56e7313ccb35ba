-- `payments` holds a success in one row: UTR or the acquirer's payment id, amount, times, source, reporter and note. A cancellation
-- is a time of its order, and every failed attempt is a row of payment_attempts, so that payment_changes is not needed.

alter table payments rename column heard_at to received_at;
alter index payments_heard_at_idx rename to payments_received_at_idx;
alter table payments
  add column source text,
  -- The operator who reported it; null for reports of the service.
  add column reported_by text,
  add column note text;

drop trigger payments_append_only on payments;
update payments p
   set source = c.reason, reported_by = c.told_by, note = c.note
  from payment_changes c
 where c.mid = p.mid and c.order_id = p.order_id and c.status = 'SUCCESS' and p.kind <> 'second';
update payments p
   set source = 'operator', reported_by = e.told_by, note = e.note
  from payment_exceptions e
 where e.mid = p.mid and e.order_id = p.order_id and e.utr = p.utr and e.kind = 'double payment' and e.told_by is not null
   and p.kind = 'second';
-- The source of a second payment was not stored.
update payments set source = 'notification' where source is null;
alter table payments alter column source set not null;
alter table payments
  add constraint payments_source_check check (source in ('notification', 'enquiry', 'day file', 'operator', 'sandbox'));

-- The acquirer's ids and the bank's reference may arrive later; all else of a payment is append-only.
create trigger payments_append_only
  before update of mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source, reported_by, note
      or delete or truncate on payments
  for each statement execute function refuse_to_rewrite();
create trigger payments_without_operator before insert on payments for each row
  when (current_user = 'upi_service' and (new.reported_by is not null or new.source in ('operator', 'day file')))
  execute function refuse_row('an operator reports payments by ops');

-- Holds only payments of the acquirer's daily transaction report, which are few: reconciliation counts them.
create index payments_day_file_idx on payments (mid, received_at) where source = 'day file';

alter table payment_attempts rename column reason to source;
-- Citus cannot rename a constraint.
alter table payment_attempts drop constraint payment_attempts_reason_check;
alter table payment_attempts
  add constraint payment_attempts_source_check check (source in ('notification', 'enquiry', 'day file', 'operator', 'sandbox'));
alter table payment_attempts rename column reported_at to received_at;

-- The first failed attempt of each status of an order was stored in payment_changes before payment_attempts existed.
insert into payment_attempts (mid, order_id, status, attempt, utr, paid_at, source, received_at)
select mid, order_id, status,
       concat_ws(' ', utr, to_char(paid_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')), utr, paid_at, reason, changed_at
  from payment_changes
 where status in ('FAIL', 'REJECT')
    on conflict do nothing;

alter table payment_intents rename column fail_told_at to failure_reported_at;
-- When the merchant cancelled the order. It stays if a late payment follows.
alter table payment_intents add column cancelled_at timestamptz;
update payment_intents i
   set cancelled_at = c.changed_at
  from payment_changes c
 where c.mid = i.mid and c.order_id = i.order_id and c.status = 'CANCELLED';
alter table payment_intents
  add constraint payment_intents_cancelled_check check (status <> 'CANCELLED' or cancelled_at is not null);
create trigger payment_intents_cancellation_is_final before update of cancelled_at on payment_intents for each row
  when (old.cancelled_at is not null and new.cancelled_at is distinct from old.cancelled_at)
  execute function refuse_row('an order is cancelled once');

drop table payment_changes;

-- `digest` was the id of a refund, or what else distinguishes exceptions. exception_id is computed from it, and stays the same.
alter table payment_exceptions rename column told_by to reported_by;
alter table payment_exceptions rename column digest to dedup_key;
alter table payment_exceptions
  -- The refund that the exception is about; empty for others.
  add column our_refund_id text not null default '';
alter table payment_exceptions drop column exception_id;
alter table payment_exceptions drop constraint payment_exceptions_pkey;
-- Rewrites the rows without the trigger, which rejects updates. Our ids of refunds are 32 hex digits.
alter table payment_exceptions
  alter column our_refund_id type text using case when kind like 'refund%' and dedup_key ~ '^[0-9a-f]{32}$' then dedup_key else '' end,
  alter column dedup_key type text using case when kind like 'refund%' and dedup_key ~ '^[0-9a-f]{32}$' then '' else dedup_key end;
alter table payment_exceptions
  -- dedup_key distinguishes exceptions whose other facts are equal: the SHA-256 of an unreadable body in hex, the time of an
  -- unreadable status, or the acquirer's id of a refund that is not stored.
  add constraint payment_exceptions_pkey primary key (mid, order_id, kind, utr, amount_paise, status, our_refund_id, dedup_key);
alter table payment_exceptions
  -- 48 bits of a hash of the key: the same facts have the same id wherever they are stored.
  add column exception_id text generated always as (
    left(lpad(to_hex(hashtextextended(
      mid || '|' || order_id || '|' || kind || '|' || utr || '|' || amount_paise || '|' || status || '|' || our_refund_id || dedup_key,
      0)), 16, '0'), 12)) stored;
create index payment_exceptions_exception_id_idx on payment_exceptions (mid, exception_id);
create index payment_exceptions_acquirer_account_idx
  on payment_exceptions (mid, acquirer_account, kind, exception_id) where acquirer_account is not null;

alter table acquirer_intents rename column acquirer_id to acquirer_order_id;
alter table acquirer_intents rename column enquiries to status_checks;
alter table acquirer_intents drop constraint acquirer_intents_enquiries_check;
alter table acquirer_intents add constraint acquirer_intents_status_checks_check check (status_checks >= 0);
alter table acquirer_intents rename column enquire_at to status_check_at;
alter table acquirer_intents rename column asked_at to status_checked_at;
alter table acquirer_intents rename column by_next to by_fallback;
alter index acquirer_intents_enquire_at_idx rename to acquirer_intents_status_check_at_idx;
alter index acquirer_intents_mid_acquirer_enquire_at_idx rename to acquirer_intents_mid_acquirer_status_check_at_idx;
alter index acquirer_intents_acquirer_asked_at_idx rename to acquirer_intents_acquirer_status_checked_at_idx;
alter index acquirer_intents_by_next_idx rename to acquirer_intents_by_fallback_idx;

alter table merchants rename column next_acquirer to fallback_acquirer;
alter table merchants rename column next_acquirer_merchant_id to fallback_acquirer_merchant_id;
alter table merchants drop constraint merchants_next_acquirer_check;
alter table merchants drop constraint merchants_next_acquirer_merchant_id_check;
alter table merchants
  add constraint merchants_fallback_acquirer_check check (fallback_acquirer ~ '^[a-z0-9-]{1,32}(:[A-Za-z0-9_-]{1,64})?$');
alter table merchants
  add constraint merchants_fallback_acquirer_merchant_id_check check (fallback_acquirer_merchant_id ~ '^[A-Za-z0-9_.-]{1,64}$');

alter table refunds rename column made_by to created_by;
alter table refunds rename column made_at to created_at;
alter table refunds rename column asked_paise to requested_paise;
alter trigger refunds_made_by_service on refunds rename to refunds_created_by_service;

alter table webhook_deliveries rename column answer to response;

alter table settlements rename column known_at to recorded_at;
alter index settlements_known_at_idx rename to settlements_recorded_at_idx;
alter table settlement_versions rename column known_at to recorded_at;
alter table settlement_versions rename column replaced_by to replaced_by_import_id;
alter index settlement_versions_replaced_by_idx rename to settlement_versions_replaced_by_import_id_idx;

-- Percents, while `fee` and `tax` are money in other tables.
alter table merchant_fees rename column fee to fee_percent;
alter table merchant_fees rename column tax to tax_percent;
alter table file_layouts rename column date_form to date_format;
alter table statement_imports rename column kept to stored;
