-- The day of India on which a key was last used. The service writes it, at most once a day for each key.
alter table access_keys add column last_used_on date;
