-- Makes the two roles of the service and gives the database to the first of them. May be repeated.
--
--   upi_owner    owns the database and its tables: migrations and the operator's commands connect as this role
--   upi_service  is what the service connects as: it may do what grants.sql names, and nothing else
--
-- Run it as a superuser, in the service's database, before the first `ops migrate`; then give both roles a password. What
-- another role made in the schema `public`, an older installation's superuser for instance, becomes upi_owner's.

-- A lock that a backup or a long list holds ends this script after 2 s, instead of keeping payments waiting; then run
-- it again.
set lock_timeout = '2s';

do $$
declare
  statement text;
begin
  if to_regrole('upi_owner') is null then
    create role upi_owner login;
  end if;
  if to_regrole('upi_service') is null then
    create role upi_service login;
  end if;

  -- Two batches of intents may deadlock. PostgreSQL looks for that after 1 s by default, when the service has given up the
  -- query; after 0.2 s one of them is refused in time, and stored at the second try.
  alter role upi_service set deadlock_timeout = '200ms';
  -- A wait for a lock ends after 0.8 s. After 0.9 s the service would take the connection for a dead one, and close the
  -- others with it.
  alter role upi_service set lock_timeout = '800ms';
  -- An instance that is stopped in the middle of a transaction must not keep its rows from the others. Long lists lift it.
  alter role upi_service set idle_in_transaction_session_timeout = '10s';
  -- PostgreSQL ends a statement that the service has given up, within 1 s, and the connection is free. Without this,
  -- while a node of a cluster was silent, those statements waited for it, ten more each second, until the coordinator
  -- took no more connections.
  alter role upi_service set client_connection_check_interval = '1s';

  execute format('alter database %I owner to upi_owner', current_database());
  -- By default every role may make temporary tables, and so fill the disk.
  execute format('revoke temporary on database %I from public', current_database());
  -- By default every role may make large objects too, which fill the disk as well.
  revoke execute on function lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea), lo_put(oid, bigint, bytea),
    lowrite(integer, bytea) from public;
  -- By default every role may connect to these two databases as well, and fill the disk from there. Whoever else logs in keeps
  -- that right, such as a role that monitors the server; a role that is made later has to be given it.
  for statement in
    with open_to_all as (
      select datname
        from pg_database
       where datname in ('postgres', 'template1') and datname <> current_database()
         and exists (select
                       from aclexplode(coalesce(datacl, acldefault('d', datdba)))
                      where grantee = 0 and privilege_type = 'CONNECT')
    )
    select format('grant connect on database %I to %I', datname, rolname)
      from open_to_all, pg_roles
     where rolcanlogin and rolname <> 'upi_owner' and not pg_has_role(pg_roles.oid, 'upi_service', 'member')
    union all
    select format('revoke connect on database %I from public', datname)
      from open_to_all
  loop
    execute statement;
  end loop;

  for statement in
    select format('alter table %s owner to upi_owner', oid::regclass)
      from pg_class
     -- Sequences and indexes go with their tables.
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm') and relowner <> 'upi_owner'::regrole
       and not exists (select from pg_depend where objid = pg_class.oid and deptype = 'e')
    union all
    select format('alter routine %s owner to upi_owner', oid::regprocedure)
      from pg_proc
     where pronamespace = 'public'::regnamespace and proowner <> 'upi_owner'::regrole
       and not exists (select from pg_depend where objid = pg_proc.oid and deptype = 'e')
  loop
    execute statement;
  end loop;
end
$$;
