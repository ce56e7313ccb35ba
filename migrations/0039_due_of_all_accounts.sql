-- One statement finds the due work of all accounts and merchants: its cost follows what is due, not how many of them there are.
create index acquirer_intents_enquire_at_idx on acquirer_intents (enquire_at, acquirer, mid)
  where enquire_at is not null;
create index refunds_due_at_idx on refunds (due_at, acquirer, mid) where due_at is not null;
