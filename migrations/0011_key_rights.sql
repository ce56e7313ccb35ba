-- Each key names its rights. A partner's key can only list.
update access_keys
   set rights = case when pid is null then rights || '{refund}' else '{list}' end
 where may_refund or pid is not null;

alter table access_keys
  alter column rights drop default,
  -- The last day on which the key is valid, in India.
  add column expires_on date,
  drop column may_refund;

-- Instances of the earlier version read this column until they are replaced.
alter table access_keys add column may_refund boolean generated always as ('refund' = any (rights)) stored;

alter table access_keys add constraint access_keys_rights_check
  check (rights <@ '{create,status,cancel,list,refund}' and cardinality(rights) > 0 and (pid is null or rights = '{list}'));
