-- What an acquirer may keep of a merchant's payments by their contract, from a day on. A row of the bank is judged by the newest
-- contract that is not of a later day: a later one changes neither a closed month nor a report as of a day before it.
create table merchant_fees (
  mid text not null,
  -- Without the account at it, such as `setu`: the books count payments so.
  acquirer text not null,
  -- The day in India from which it counts.
  since date not null,
  -- Percent of the payment, and of that fee; null where nothing is expected.
  fee numeric(4, 2),
  tax numeric(4, 2),
  constraint merchant_fees_pkey primary key (mid, acquirer, since),
  constraint merchant_fees_fee_check check (num_nonnulls(fee, tax) in (0, 2) and fee >= 0 and tax >= 0)
);
