-- What operators did by the command line. Both tables are append-only.

-- Written before the command changes anything, in a transaction of its own: there is no change without it.
create table audit_commands (
  audit_id text not null,
  -- By the database's clock: that of the person's machine may be anything.
  begun_at timestamptz not null default clock_timestamp(),
  -- As the operator gave it, else their login name.
  person text not null,
  -- The role of the database, which nobody can choose.
  database_role text not null default session_user,
  command text not null,
  -- By flag, without secrets and without the customer's data.
  arguments jsonb not null,
  constraint audit_commands_pkey primary key (audit_id)
);

-- How it ended: in the transaction of the change where it has one. One that was
-- killed has no row here, nor one that broke off after it may have changed something.
create table audit_outcomes (
  audit_id text not null,
  ended_at timestamptz not null default clock_timestamp(),
  outcome text not null,
  -- Why it failed; else what was made, by name.
  detail jsonb not null,
  constraint audit_outcomes_pkey primary key (audit_id),
  constraint audit_outcomes_command_fkey foreign key (audit_id) references audit_commands (audit_id),
  constraint audit_outcomes_outcome_check check (outcome in ('done', 'failed'))
);

create trigger audit_commands_append_only before update or delete or truncate on audit_commands
  for each statement execute function refuse_to_rewrite();
create trigger audit_outcomes_append_only before update or delete or truncate on audit_outcomes
  for each statement execute function refuse_to_rewrite();
