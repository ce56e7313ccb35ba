-- Each key names its rights. A partner's key can only list.
alter table access_keys
  alter column rights drop default,
  -- The last day on which the key is valid, in India.
  add column expires_on date;

alter table access_keys add constraint access_keys_rights_check
  check (rights <@ '{create,status,cancel,list,refund}' and cardinality(rights) > 0 and (pid is null or rights = '{list}'));
