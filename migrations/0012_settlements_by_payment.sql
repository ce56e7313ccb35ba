-- Finds the settlement of a payment. In a migration of its own: imports wait while the table is read, and lists do not. It holds
-- only rows of files that name the payment, of which there are none yet.
create index settlements_payment_utr_idx on settlements (mid, payment_utr) where payment_utr is not null;
