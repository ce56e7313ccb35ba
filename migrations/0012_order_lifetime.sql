-- The largest expiry_minutes that the merchant may request. The acquirer may allow less, which the code checks.
alter table merchants add column max_expiry_minutes integer not null default 1440;
alter table merchants add constraint merchants_max_expiry_minutes_check check (max_expiry_minutes between 5 and 43200);

-- Orders that can be paid for longer than a day. Look-ups of open orders by their creation end after a day, and find these orders
-- by this index. No payment changes its columns and its condition, so that it costs other orders nothing.
create index payment_intents_long_idx on payment_intents (created_at, mid) where expires_at - created_at > interval '1 day';
