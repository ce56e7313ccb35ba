-- What is due at an acquirer is looked for merchant by merchant, so that a long queue of one hides nobody else's.
create index refunds_mid_acquirer_due_at_idx on refunds (mid, acquirer, due_at) where due_at is not null;
drop index refunds_due_at_idx;
create index acquirer_intents_mid_acquirer_enquire_at_idx on acquirer_intents (mid, acquirer, enquire_at)
  where enquire_at is not null;
drop index acquirer_intents_enquire_at_idx;

-- Payments of the last minutes are looked for all the time: what no vacuum has summarized would be read whole.
alter index payments_heard_at_idx set (autosummarize = on);
