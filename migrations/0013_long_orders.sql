-- Orders that can be paid for longer than a day. Look-ups of open orders by their creation end after a day, and find these orders
-- by this index, in the order of their creation, because an order_id begins with its time. No payment changes its columns and its
-- condition, so that it costs other orders nothing. It has its own file, because every request reads merchants, which the file
-- before it locks, and building the index reads every order.
create index payment_intents_long_idx on payment_intents (mid, order_id, expires_at) where expires_at - created_at > interval '1 day';
