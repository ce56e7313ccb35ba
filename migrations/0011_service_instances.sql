-- The instances of the service, and what only they know: each writes its own row every few seconds.
create table service_instances (
  -- Random, for each start of the process.
  instance_id text not null,
  host text not null,
  version text not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  -- When it ended by itself; null while it runs, and when it was killed.
  stopped_at timestamptz,
  -- Notifications of acquirers that it refused on the Indian day `refused_on`.
  refused_on date,
  refused integer not null default 0,
  last_notification_at timestamptz,
  -- Acquirers whose last call failed.
  acquirers_away text[] not null default '{}',
  constraint service_instances_pkey primary key (instance_id)
);
