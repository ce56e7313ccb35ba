-- Commands of operators. Append-only, like their outcomes.

-- Stored in a transaction of its own before the command changes anything, so that no change lacks its row.
create table audit_commands (
  audit_id text not null constraint audit_commands_pkey primary key,
  -- By the database's clock, because the operator's machine may have any time.
  begun_at timestamptz not null default clock_timestamp(),
  person text not null, -- The name that the operator gave, else their login name.
  -- The role of the connection, which the operator cannot choose freely.
  database_role text not null default session_user,
  command text not null,
  -- By flag, without secrets and without customer data.
  arguments jsonb not null
);
-- A row of the console has its role and its time, whatever name it has.
create trigger audit_commands_of_console before insert on audit_commands for each row
  when (current_user = 'upi_console' and (new.database_role <> 'upi_console'
    or new.begun_at not between clock_timestamp() - interval '1 minute' and clock_timestamp() + interval '1 minute'))
  execute function refuse_row('the audit of the console has its role and time');
create trigger audit_commands_append_only before update or delete or truncate on audit_commands
  for each statement execute function refuse_to_rewrite();

-- Stored in the transaction of the change, if it has one. A killed command has no row, nor has one that broke off after it may have
-- changed something. No foreign key: on Citus a role that writes a reference table also needs the right to change the tables that it
-- refers to.
create table audit_outcomes (
  audit_id text not null constraint audit_outcomes_pkey primary key,
  ended_at timestamptz not null default clock_timestamp(),
  outcome text not null constraint audit_outcomes_outcome_check check (outcome in ('done', 'failed')),
  detail jsonb not null -- Why it failed; else what it created, by name.
);
create trigger audit_outcomes_append_only before update or delete or truncate on audit_outcomes
  for each statement execute function refuse_to_rewrite();
