-- A merchant's money reaches them through one acquirer. Which ones there are is decided by the code.
alter table merchants
  add column acquirer text not null default 'direct',
  -- The acquirer's own identifier of the merchant, where it has one.
  add column acquirer_merchant_id text;
alter table merchants
  add constraint merchants_acquirer_check check (acquirer ~ '^[a-z0-9-]{1,32}$');
alter table merchants
  add constraint merchants_acquirer_merchant_id_check check (acquirer_merchant_id ~ '^[A-Za-z0-9_.-]{1,64}$');

-- What an acquirer that issues its own links has prepared for an intent. A table of its own: an intent without such an
-- acquirer costs nothing here, and no index has to be built over the intents that exist.
create table acquirer_intents (
  mid text not null,
  order_id text not null,
  acquirer text not null,
  -- As it was when the intent was made: a later change of the merchant must not ask about another one's payments.
  acquirer_merchant_id text not null,
  -- The acquirer's identifier of the intent.
  acquirer_id text not null,
  -- The link's parameter tr.
  reference text not null,
  link text not null,
  -- How often the acquirer was asked about it, counted before it is asked.
  enquiries smallint not null,
  -- When it is asked next; null when it will not be asked again.
  enquire_at timestamptz,
  constraint acquirer_intents_pkey primary key (mid, order_id),
  constraint acquirer_intents_intent_fkey foreign key (mid, order_id) references payment_intents (mid, order_id),
  constraint acquirer_intents_enquiries_check check (enquiries between 0 and 3)
);

-- Holds only what waits.
create index acquirer_intents_enquire_at_idx on acquirer_intents (enquire_at) where enquire_at is not null;
-- A day file names an intent by it.
create index acquirer_intents_reference_idx on acquirer_intents (reference);

-- Older rows satisfied a narrower check, so the new one need not read them again.
alter table payment_changes drop constraint payment_changes_reason_check;
alter table payment_changes
  add constraint payment_changes_reason_check
  check (reason in ('notification', 'enquiry', 'day file', 'operator', 'sandbox', 'merchant')) not valid;

alter table payment_attempts drop constraint payment_attempts_reason_check;
alter table payment_attempts
  add constraint payment_attempts_reason_check
  check (reason in ('notification', 'enquiry', 'day file', 'operator', 'sandbox')) not valid;
