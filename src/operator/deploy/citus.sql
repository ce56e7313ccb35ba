-- Distributes the tables over the nodes of a Citus cluster. Small tables, and tables about all merchants, become reference tables
-- on each node. The other tables are distributed by mid, so that all rows of a merchant are on one node. The script is
-- idempotent, even after an earlier run was killed.
--
-- `ops database spread` runs the script on the coordinator, as the owner of the tables. Writes to a table wait while Citus copies
-- the table. The script prints the name of each table before copying the table.
--
-- Every statement in the service must run on plain and on distributed tables. Citus rejects these forms: a time that `set`
-- computes from a column and an interval; to_char in `returning`; `exists (select from …)` on a CTE; and a subquery on a
-- distributed table for each row of a temporary table. A subquery that identifies its merchant by a column (`t.mid = i.mid`)
-- instead of the parameter reads every shard: it takes 33 ms instead of 1.9 ms, and fails while a node is down.

set statement_timeout = 0;
set lock_timeout = 0;
set client_min_messages = warning;

do $$
begin
  if to_regclass('pg_dist_node') is null then
    raise exception 'the extension Citus is not installed: only a Citus cluster can distribute a database over several servers';
  elsif exists (select from pg_dist_local_group where groupid > 0) then
    raise exception 'this server is a Citus worker: set DATABASE_MIGRATE_URL to the coordinator';
  elsif not exists (select from pg_dist_node where shouldhaveshards) then
    raise exception 'the cluster has no workers: add them with `select citus_add_node(…)` on the coordinator';
  end if;
end
$$;

-- Waits for the server, which may still be copying the last table of an earlier run whose client was killed.
select pg_advisory_lock(hashtext('upi_service spread'));

-- Sets database settings that apply to every connection.
do $$
declare
  setting record;
begin
  for setting in
    values
      -- With `on`, a table that references a reference table would stay on the coordinator.
      ('citus.enable_local_reference_table_foreign_keys', 'off'),
      -- Allows triggers on distributed tables. The triggers are safe, because they read only rows of their own merchant, which
      -- are on the same node.
      ('citus.enable_unsafe_triggers', 'on'),
      -- Propagates `set local` to the workers, so that a long list can raise statement_timeout on the workers too.
      ('citus.propagate_set_commands', 'local'),
      -- Limits a query to one connection per node. By default, a query on all shards opens one connection per shard, and 50
      -- concurrent pay pages exhaust the workers' connections.
      ('citus.max_adaptive_executor_pool_size', '1')
  loop
    execute format('alter database %I set %s = %L', current_database(), setting.column1, setting.column2);
    perform set_config(setting.column1, setting.column2, false);
  end loop;
end
$$;

-- Distributes each table in its own transaction, after the tables that it references.
do $$
declare
  whole_on_each_node constant text[] := array[
    'merchants', 'acquirer_accounts', 'partners', 'partner_merchants', 'access_keys', 'key_uses', 'schema_migrations',
    'settlement_imports', 'settlement_import_bases', 'audit_commands', 'audit_outcomes', 'bank_holiday_changes',
    'closed_months', 'file_layouts', 'statement_imports', 'statement_lines', 'payout_rests', 'operator_keys'];
  -- Citus colocates the other distributed tables with this table.
  first_by_mid constant text := 'payment_intents';
  next record;
begin
  for next in
    with recursive chain (oid, length) as (
      select oid, 0 from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
       union all
      select f.conrelid, length + 1
        from chain
        join pg_constraint f on f.contype = 'f' and f.confrelid = chain.oid
    )
    select c.oid, relname as name
      from chain
      join pg_class c using (oid)
     where not exists (select from pg_dist_partition where logicalrelid = c.oid)
     group by c.oid, relname
     order by relname <> all (whole_on_each_node), relname <> first_by_mid, max(length), relname
  loop
    raise info using message = format('distributing %s', next.name), table = next.name;
    if next.name = any (whole_on_each_node) then
      perform create_reference_table(next.oid);
    else
      perform create_distributed_table(
        next.oid, 'mid', colocate_with => case when next.name = first_by_mid then 'none' else first_by_mid end);
    end if;
    commit;
  end loop;
end
$$;

-- Deletes the hidden copies of rows that Citus leaves on the coordinator, because customer data in the copies would survive its
-- erasure. Disables the triggers of append-only tables within this transaction, which locks the tables.
do $$
declare
  copies constant regclass[] := array(
    select logicalrelid from pg_dist_partition where pg_relation_size(logicalrelid) > 0);
  one regclass;
begin
  if copies = '{}' then
    return;
  end if;
  for one in select logicalrelid from pg_dist_partition loop
    execute format('alter table %s disable trigger user', one);
  end loop;
  foreach one in array copies loop
    perform truncate_local_data_after_distributing_table(one);
  end loop;
  for one in select logicalrelid from pg_dist_partition loop
    execute format('alter table %s enable trigger user', one);
  end loop;
end
$$;
