-- A settlement file, or the acquirer's list of payments, may name a payment by the acquirer's id.
create index payments_acquirer_payment_id_idx on payments (acquirer_payment_id) where acquirer_payment_id is not null;

-- `amount_paise` is the whole rest of a payout; this is its part of orders that are not known. `day` is the payout's, India's.
-- Rows of earlier versions have neither.
alter table payout_rests
  add column unknown_orders_paise bigint not null default 0,
  add column day date;
