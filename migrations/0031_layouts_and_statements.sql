-- How the files of banks and acquirers are read: see settlements/layouts.ts.
create table file_layouts (
  name text not null,
  -- Pairs of our column and the bank's.
  columns jsonb not null,
  date_form text not null,
  -- The bank's words for each of our statuses.
  statuses jsonb not null,
  mid text,
  constraint file_layouts_pkey primary key (name)
);
