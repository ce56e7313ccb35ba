-- The day of India on which a key was last used, in a table of its own that refers to none. On Citus, whoever writes a small table
-- that refers to another needs a right to change the other one too, and the service must not change merchants or partners.
-- access_keys.last_used_on stays for instances of the version before.
create table key_uses (
  public_key text not null,
  last_used_on date not null,
  constraint key_uses_pkey primary key (public_key)
);
insert into key_uses (public_key, last_used_on)
select public_key, last_used_on from access_keys where last_used_on is not null;
