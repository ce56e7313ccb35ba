-- Makes the two roles of the service and gives the database to upi_owner. May be repeated.
--
--   upi_owner    owns the database and its tables: migrations and the operator's commands connect as this role
--   upi_service  is the role of the service: it has the rights of grants.sql, and no others
--
-- Run this script as a superuser, in the service's database, before the first `ops migrate`; then give both roles a
-- password. Tables of other roles in the schema `public`, such as a superuser's, become upi_owner's.

-- Behind a lock of a backup or a long list this script ends after 2 s, because payments wait behind it: run it again.
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

  -- Two batches of intents may deadlock. By default PostgreSQL checks after 1 s, when the service has given up the query.
  -- After 0.2 s one batch is refused in time, and stored at the second try.
  alter role upi_service set deadlock_timeout = '200ms';
  -- Less than the 0.9 s after which the service takes a connection for dead, and closes idle connections too.
  alter role upi_service set lock_timeout = '800ms';
  -- A paused instance must not hold locks on its rows for long. Long lists lift this limit.
  alter role upi_service set idle_in_transaction_session_timeout = '10s';
  -- PostgreSQL ends a statement within 1 s after the service has given it up. Otherwise, while a node of a cluster is silent,
  -- such statements pile up until the coordinator takes no more connections.
  alter role upi_service set client_connection_check_interval = '1s';

  execute format('alter database %I owner to upi_owner', current_database());
  -- By default every role may make temporary tables, which can fill the disk.
  execute format('revoke temporary on database %I from public', current_database());
  -- By default every role may make large objects, which can fill the disk too.
  revoke execute on function lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea), lo_put(oid, bigint, bytea),
    lowrite(integer, bytea) from public;
  -- By default every role may connect to these two databases, and fill the disk from there. Existing other roles keep the right,
  -- such as a role that monitors the server; roles that are made later need a grant.
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
     -- Sequences and indexes change their owner with their tables.
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
