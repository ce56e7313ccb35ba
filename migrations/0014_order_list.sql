-- Lists a merchant's orders of a period. The primary key has the same order, because an order_id begins with its time, but with few
-- merchants PostgreSQL prefers payment_intents_order_id_idx, and so reads the orders of all merchants.
create index payment_intents_mid_created_at_idx on payment_intents (mid, created_at);
