-- How many enquiries an order may have is the acquirer's own number, which the code knows.
alter table acquirer_intents drop constraint acquirer_intents_enquiries_check;
alter table acquirer_intents add constraint acquirer_intents_enquiries_check check (enquiries >= 0) not valid;
-- When the last enquiry was made: the next one comes after the acquirer's pause.
alter table acquirer_intents add column asked_at timestamptz;

-- Enquiries of the last minute are counted by it, since an acquirer limits them for the whole account.
create index acquirer_intents_acquirer_asked_at_idx on acquirer_intents (acquirer, asked_at) where asked_at is not null;
