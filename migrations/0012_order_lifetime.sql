-- The largest expiry_minutes that the merchant may request. The acquirer may allow less, which the code checks.
alter table merchants add column max_expiry_minutes integer not null default 1440;
alter table merchants add constraint merchants_max_expiry_minutes_check check (max_expiry_minutes between 5 and 43200);
