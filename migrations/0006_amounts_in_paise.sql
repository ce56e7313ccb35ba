-- Amounts with paise, and what real shops need of a merchant's settings. Instances of the version before serve while it runs
-- and after it: they read and write `amount`, whole rupees, and every intent that they know has no paise.

-- Constant defaults, so no row is written. Older rows satisfy the checks, so they need not be read either: the table is
-- locked for milliseconds, however many intents there are.
alter table payment_intents
  -- What the amount has beyond its whole rupees.
  add column paise smallint not null default 0;
alter table payment_intents
  add constraint payment_intents_paise_check
  check (paise between 0 and 99 and amount * 100 + paise <= 10000000) not valid;

alter table merchants
  -- How the merchant's requests spell amounts and telephone numbers.
  add column input text not null default 'strict',
  -- How long its intents can be paid; null for the service's own setting.
  add column expiry_minutes integer;
alter table merchants
  add constraint merchants_input_check check (input in ('strict', 'shop'));
alter table merchants
  add constraint merchants_expiry_minutes_check check (expiry_minutes between 1 and 1440);
