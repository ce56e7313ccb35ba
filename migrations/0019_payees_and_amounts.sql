-- Payees that an acquirer's links may have, and larger amounts for some merchants. Instances of the version before serve while it
-- runs and after it: they read larger amounts as any other, and make none.

-- Older rows satisfy the wider checks, so they are not read: the table is locked for milliseconds. It comes before merchants, as
-- in the locks of a new intent.
alter table payment_intents drop constraint payment_intents_amount_check;
alter table payment_intents
  add constraint payment_intents_amount_check check (amount between 1 and 500000) not valid;
alter table payment_intents drop constraint payment_intents_paise_check;
alter table payment_intents
  add constraint payment_intents_paise_check
  check (paise between 0 and 99 and amount * 100 + paise <= 50000000) not valid;

alter table merchants
  -- UPI addresses that an acquirer's link may pay; a `*` before the @ stands for any text. None: only `vpa`.
  add column payees text[] not null default '{}',
  -- Largest amount of an intent, in whole rupees.
  add column max_amount integer not null default 100000;
alter table merchants
  add constraint merchants_max_amount_check check (max_amount between 1 and 500000);
