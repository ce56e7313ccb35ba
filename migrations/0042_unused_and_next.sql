-- Nothing reads these any more.
drop index if exists merchants_order_id_end_idx;
alter table access_keys drop column last_used_on;

-- Each payout has a day.
update payout_rests r
   set day = (i.imported_at at time zone 'Asia/Kolkata')::date
  from settlement_imports i
 where i.import_id = r.import_id and r.day is null;
alter table payout_rests alter column day set not null;

-- For the partner's list of merchants, for keys with single rights, and for lists of refunds by their creation.
alter table partner_merchants add column linked_at timestamptz not null default now();
alter table access_keys add column rights text[] not null default '{create,status,cancel,list}';
create index refunds_mid_created_at_idx on refunds (mid, made_at);
