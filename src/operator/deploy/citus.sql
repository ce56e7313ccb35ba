-- Distributes the tables over the nodes of a Citus cluster: the small tables, and those about all merchants, whole on each
-- node, the others by mid, so that all rows of a merchant are on one node. May be repeated, even after a kill.
--
-- `ops database spread` runs this script on the coordinator, as the owner of the tables. Writes to a table wait while it is
-- copied. The name of each table is printed when its copy begins.
--
-- Every statement of the service runs on one server and on distributed tables. Citus rejects some forms: a time that `set`
-- computes from a column and an interval, to_char in `returning`, `exists (select from …)` of a CTE, a subquery on a distributed
-- table for each row of a temporary one. A subquery that names its merchant by a column (`t.mid = i.mid`) and not by the
-- parameter reads every shard: 33 ms in place of 1.9 ms, and none while a node is away.

set statement_timeout = 0;
set lock_timeout = 0;
set client_min_messages = warning;

do $$
begin
  if to_regclass('pg_dist_node') is null then
    raise exception 'this database has no Citus: only a cluster of Citus can hold a database on several servers';
  elsif exists (select from pg_dist_local_group where groupid > 0) then
    raise exception 'this server is a worker: name the coordinator in DATABASE_MIGRATE_URL';
  elsif not exists (select from pg_dist_node where shouldhaveshards) then
    raise exception 'the cluster has no workers: add them first, by `select citus_add_node(…)` on the coordinator';
  end if;
end
$$;

-- Waits for a killed run, whose last table the server may still be copying.
select pg_advisory_lock(hashtext('upi_service spread'));

-- Settings that every connection needs.
do $$
declare
  setting record;
begin
  for setting in
    values
      -- When on, a table that refers to a reference table stays on the coordinator.
      ('citus.enable_local_reference_table_foreign_keys', 'off'),
      -- Allows triggers on distributed tables: they read rows of their own merchant only, which are on the same node.
      ('citus.enable_unsafe_triggers', 'on'),
      -- Sends `set local` to the workers: a long list lifts its statement_timeout there too.
      ('citus.propagate_set_commands', 'local'),
      -- One connection to each node for a query. By default a look-up in all shards opens one for each shard, and 50 pay
      -- pages at once use up the workers' connections.
      ('citus.max_adaptive_executor_pool_size', '1')
  loop
    execute format('alter database %I set %s = %L', current_database(), setting.column1, setting.column2);
    perform set_config(setting.column1, setting.column2, false);
  end loop;
end
$$;

-- Each table after the tables that it refers to, and in a transaction of its own.
do $$
declare
  whole_on_each_node constant text[] := array[
    'merchants', 'acquirer_accounts', 'partners', 'partner_merchants', 'access_keys', 'key_uses', 'schema_migrations',
    'settlement_imports', 'settlement_import_bases', 'audit_commands', 'audit_outcomes', 'bank_holiday_changes',
    'closed_months', 'file_layouts', 'statement_imports', 'statement_lines', 'payout_rests'];
  -- The others are colocated with it.
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
    raise info using message = format('spreading %s', next.name), table = next.name;
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

-- Citus leaves hidden rows behind when it copies a table: customers who are erased later would stay in these rows. The triggers
-- of append-only tables are off in this transaction, which locks the tables.
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
