-- Creates the three roles and makes upi_owner the owner of the database. The script is idempotent.
--
--   upi_owner    owns the database and its tables; migrations and `ops` connect as this role
--   upi_service  is the role of the service, with only the rights in grants.sql
--   upi_console  is the role of `ops console`, with only the rights in console-grants.sql
--
-- Run the script as a superuser in the service's database before the first `ops migrate`, then set a password for each role.
-- upi_owner becomes the owner of all tables in the schema `public`, including tables that a superuser created.

-- Payments wait while this script waits for a lock. If a backup or a long list holds a lock, the script fails after 2 s. Run the
-- script again later.
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
  if to_regrole('upi_console') is null then
    create role upi_console login;
  end if;

  -- Two batches of intents may deadlock. By default, PostgreSQL checks for a deadlock after 1 s, when the service's query has
  -- already timed out. A check after 0.2 s cancels one batch early enough for a retry.
  alter role upi_service set deadlock_timeout = '200ms';
  -- The timeout is less than 0.9 s, because after 0.9 s the service treats a connection as dead and also closes idle connections.
  alter role upi_service set lock_timeout = '800ms';
  -- A paused instance must not hold row locks for long. Long lists raise this timeout.
  alter role upi_service set idle_in_transaction_session_timeout = '10s';
  -- PostgreSQL cancels a statement within 1 s after its client has disconnected. Without this setting, abandoned statements would
  -- use up the coordinator's connections while a cluster node does not respond.
  alter role upi_service set client_connection_check_interval = '1s';

  -- The same for a page that an operator has closed.
  alter role upi_console set client_connection_check_interval = '1s';
  -- A report takes longer than a request of the service may, but a page of the console must end. Imports raise the limit for
  -- themselves.
  alter role upi_owner set statement_timeout = 0;
  alter role upi_console set statement_timeout = '120s';

  -- PostgreSQL compiles a statement whose estimated cost is high, which takes up to 0.7 s, longer than most statements of the
  -- service and of `ops`.
  alter role upi_service set jit = off;
  alter role upi_owner set jit = off;
  alter role upi_console set jit = off;

  execute format('alter database %I owner to upi_owner', current_database());
  -- By default, every role may create temporary tables, which can fill the disk. Imports on the console need them.
  execute format('revoke temporary on database %I from public', current_database());
  execute format('grant temporary on database %I to upi_console', current_database());
  -- By default, every role may create large objects, which can also fill the disk.
  revoke execute on function lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea), lo_put(oid, bigint, bytea),
    lowrite(integer, bytea) from public;
  -- By default, every role may connect to these two databases and use the connection to fill the disk. Other existing roles, such
  -- as a role that monitors the server, keep the right to connect. Roles created later need a grant.
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
       and not pg_has_role(pg_roles.oid, 'upi_console', 'member')
    union all
    select format('revoke connect on database %I from public', datname)
      from open_to_all
  loop
    execute statement;
  end loop;

  for statement in
    select format('alter table %s owner to upi_owner', oid::regclass)
      from pg_class
     -- Excludes sequences and indexes, because they change owner together with their tables.
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
