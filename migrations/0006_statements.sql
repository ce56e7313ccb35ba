-- Imported statements of bank accounts.
create table statement_imports (
  import_id integer not null constraint statement_imports_pkey primary key,
  imported_at timestamptz not null,
  imported_by text not null,
  file text not null, -- The file's name without its folder; `-` for standard input.
  sha256 text not null, -- Of the file, in hex.
  mids text[] not null, -- The merchants who are paid to the bank account.
  account text, -- The acquirer account that pays to it; null for all.
  covers_from date not null,
  covers_to date, -- Null if the statement covers no day.
  stored bigint not null, -- Number of stored lines.
  -- The day of the newest line and the balance after it; null unless every line has a balance. If the next statement begins with
  -- this balance, it covers the days between the two.
  closing_day date,
  closing_paise bigint,
  undone_at timestamptz,
  undone_by text,
  constraint statement_imports_undone_check check (num_nonnulls(undone_at, undone_by) in (0, 2))
);
-- Only an undo changes an import. A role needs the right to update the whole table for the lock of an import.
create trigger statement_imports_append_only
  before update of import_id, imported_at, imported_by, file, sha256, mids, account, covers_from, covers_to, stored, closing_day,
      closing_paise
      or delete or truncate on statement_imports for each statement execute function refuse_to_rewrite();

-- Lines that may be the receipt of a payout, without name, narration, balance or mobile number. The service deletes lines that
-- match no payout within 10 bank days.
create table statement_lines (
  line bigint not null,
  import_id integer not null,
  day date not null,
  amount_paise bigint not null, -- Negative for a debit.
  refs text[] not null, -- In a comparable format.
  matched_payout text, -- The reference of the payout that an operator matched with the line.
  constraint statement_lines_pkey primary key (import_id, line)
);
create index statement_lines_day_idx on statement_lines (day);
