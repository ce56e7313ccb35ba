-- An exception gets a short name and comes to an end. The rows are written anew for the name: 0.4 s for 100,000 exceptions,
-- for which reports of payments wait.
alter table payment_exceptions
  -- 48 bits of a hash of the key, so the same fact has the same name wherever it is stored, and no row has to be changed.
  add column exception_id text generated always as (
    left(lpad(to_hex(hashtextextended(
      mid || '|' || order_id || '|' || kind || '|' || utr || '|' || amount || '|' || status || '|' || digest,
      0)), 16, '0'), 12)) stored;

create index payment_exceptions_exception_id_idx on payment_exceptions (mid, exception_id);

-- How an exception ended. The first word counts: the key lets no second one in. Append-only.
create table payment_resolutions (
  -- As in payment_exceptions: empty where no intent is known.
  mid text not null,
  exception_id text not null,
  reason text not null,
  resolved_by text not null,
  resolved_at timestamptz not null,
  constraint payment_resolutions_pkey primary key (mid, exception_id)
);

create trigger payment_resolutions_append_only before update or delete or truncate on payment_resolutions
  for each statement execute function refuse_to_rewrite();
