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

-- Statements of bank accounts. `mids` are the merchants who are paid to the account.
create table statement_imports (
  import_id integer not null,
  imported_at timestamptz not null,
  imported_by text not null,
  -- The file's name without its folder; `-` for standard input.
  file text not null,
  sha256 text not null,
  mids text[] not null,
  -- The acquirer account that pays to it; null for all.
  account text,
  covers_from date not null,
  -- Null where no day is covered.
  covers_to date,
  kept bigint not null,
  undone_at timestamptz,
  undone_by text,
  constraint statement_imports_pkey primary key (import_id),
  constraint statement_imports_undone_check check (num_nonnulls(undone_at, undone_by) in (0, 2))
);

-- Of a statement's lines that may be the arrival of a payout: no name, narration or balance. After 10 bank days those that no payout
-- has matched are deleted.
create table statement_lines (
  line bigint not null,
  import_id integer not null,
  day date not null,
  -- Negative for a debit.
  amount_paise bigint not null,
  -- Comparable: see statements/references.ts.
  refs text[] not null,
  -- The reference of the payout that a person has matched with it.
  matched_payout text,
  constraint statement_lines_pkey primary key (import_id, line)
);
create index statement_lines_day_idx on statement_lines (day);

-- What an acquirer has added to a payout, or deducted from it, that is no settlement of our orders: adjustments, other orders.
create table payout_rests (
  import_id integer not null,
  account text not null,
  bank_reference_number text not null,
  amount_paise bigint not null,
  constraint payout_rests_pkey primary key (import_id, account, bank_reference_number)
);
