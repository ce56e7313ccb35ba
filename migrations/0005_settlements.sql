-- How the files of banks and acquirers are read.
create table file_layouts (
  name text not null constraint file_layouts_pkey primary key,
  columns jsonb not null, -- Pairs of our column and the bank's.
  date_format text not null,
  statuses jsonb not null, -- The bank's terms for each of our statuses.
  mid text, -- The merchant of all rows, if the file does not contain it.
  negative_below text[] not null, -- Titles between rows, below which amounts are negative.
  ignored_lines text[] not null -- Lines between rows, by their only text, that are skipped.
);

-- Imported settlement files. Imports run one after the other and are numbered from 1 without gaps.
create table settlement_imports (
  import_id integer not null constraint settlement_imports_pkey primary key,
  imported_at timestamptz not null,
  imported_by text not null,
  file text not null, -- The file's name without its folder; `-` for standard input.
  sha256 text, -- Of the file, in hex; null for an import without a settlement file, which only matches stored rows.
  inserted bigint not null, -- Numbers of the file's rows.
  unchanged bigint not null,
  updated bigint not null,
  matched bigint not null default 0, -- Number of stored rows whose payment the import found by its bank reference.
  amount_paise bigint, -- Sums of the file's rows, and of the inserted ones.
  inserted_amount_paise bigint,
  undone_at timestamptz,
  undone_by text,
  constraint settlement_imports_undone_check check (num_nonnulls(undone_at, undone_by) in (0, 2))
);

-- The earlier imports whose rows an import repeated or changed: they cannot be undone before it.
create table settlement_import_bases (
  import_id integer not null,
  on_import_id integer not null,
  constraint settlement_import_bases_pkey primary key (import_id, on_import_id)
);

-- Settlements of payments to the merchant's bank account. Imports write them.
create table settlements (
  mid text not null constraint settlements_mid_fkey references merchants (mid),
  -- Identifies the row. Byte order, independent of the server's locale, because the list guarantees it. Pattern and length are two
  -- conditions: together they take 0.25 µs a row, the pattern '{1,35}' took 2.2 µs.
  utr text collate "C" not null constraint settlements_utr_check check (utr ~ '^[A-Za-z0-9]+$' and octet_length(utr) <= 35),
  -- The UTR of the settled payment, if it is not `utr`. For a payout of several payments bank_reference_number is the payout's UTR.
  payment_utr text collate "C",
  -- The net amount, after the bank's fee and the tax on it. Negative for a deduction, whose fee and tax may be negative too.
  amount_paise bigint not null,
  fee_paise bigint,
  tax_paise bigint,
  bank_reference_number text not null,
  status text not null constraint settlements_status_check check (status in ('PENDING', 'SUCCESS', 'FAILED')),
  initiated_at timestamptz not null,
  -- The bank's value date, or the day on which a pending settlement succeeded; null if it is the day of initiated_at.
  value_date date,
  account text, -- The acquirer account that paid it out; null if the file does not name it.
  paid_account text, -- The acquirer account of its payment; null if the payment was not recorded before this version of the row.
  -- What the row is about, if the file states it. A `dispute reversal` returns the deduction of a dispute.
  event text constraint settlements_event_check check (event in ('payment', 'refund', 'dispute', 'dispute reversal', 'other')),
  created_at timestamptz not null,
  import_id integer, -- The import that stored it or changed it last.
  recorded_at timestamptz default '-infinity', -- When this version of the row was stored.
  constraint settlements_pkey primary key (mid, utr),
  constraint settlements_payment_utr_check check (payment_utr ~ '^[A-Za-z0-9]+$' and octet_length(payment_utr) <= 35),
  constraint settlements_fee_check check (fee_paise >= 0 or amount_paise < 0),
  constraint settlements_tax_check check (tax_paise >= 0 or amount_paise < 0),
  constraint settlements_bank_reference_number_check
    check (bank_reference_number ~ '^[A-Za-z0-9 ./_-]+$' and octet_length(bank_reference_number) <= 64)
);

-- In the order of the list of a merchant's settlements.
create index settlements_mid_initiated_at_utr_idx on settlements (mid, initiated_at, utr);
-- Partial, because files seldom have value dates.
create index settlements_value_date_idx
  on settlements (mid, (start_of_ist_day(value_date))) where value_date is not null;
-- Finds a merchant's accounts, and the first and last line of each, in the order of the view `account_lines`.
create index settlements_account_idx
  on settlements (mid, account, (coalesce(start_of_ist_day(value_date), initiated_at)));
-- Finds the settlement of a payment of any merchant.
create index settlements_carried_utr_idx on settlements (upper(coalesce(payment_utr, utr)));
-- Finds the lines of a payout.
create index settlements_bank_reference_number_idx on settlements (mid, bank_reference_number);
-- Deductions, which may be refunds.
create index settlements_deductions_idx on settlements (mid) where amount_paise < 0;
-- Lines of disputes, which are few.
create index settlements_disputes_idx on settlements (mid) where event in ('dispute', 'dispute reversal');
-- Finds settlements stored after a moment without reading a merchant's whole history: rows are stored in the order of these times.
create index settlements_recorded_at_idx on settlements using brin (recorded_at);

-- Each version of a settlement that an import or an undo replaced. It was valid from recorded_at until before replaced_at.
create table settlement_versions (
  mid text not null,
  utr text collate "C" not null,
  payment_utr text collate "C",
  amount_paise bigint not null,
  fee_paise bigint,
  tax_paise bigint,
  bank_reference_number text not null,
  status text not null,
  initiated_at timestamptz not null,
  value_date date,
  account text,
  paid_account text,
  event text,
  created_at timestamptz not null,
  import_id integer,
  recorded_at timestamptz default '-infinity',
  replaced_at timestamptz not null,
  replaced_by_import_id integer not null, -- The import whose rows replaced this version, or whose undo did.
  undone boolean not null,
  constraint settlement_versions_pkey primary key (mid, utr, replaced_by_import_id, undone)
);
create index settlement_versions_carried_utr_idx on settlement_versions (upper(coalesce(payment_utr, utr)));
create index settlement_versions_mid_initiated_at_idx on settlement_versions (mid, initiated_at);
create index settlement_versions_account_idx
  on settlement_versions (mid, account, (coalesce(start_of_ist_day(value_date), initiated_at)))
  where status = 'SUCCESS';
create index settlement_versions_disputes_idx on settlement_versions (mid) where event in ('dispute', 'dispute reversal');
create index settlement_versions_replaced_by_import_id_idx on settlement_versions (replaced_by_import_id) where not undone;

-- What an acquirer added to a payout or deducted from it besides settlements of our orders: adjustments and other orders.
create table payout_rests (
  import_id integer not null,
  account text not null,
  bank_reference_number text not null,
  day date, -- The day of the payout in India; null if the acquirer did not report it.
  amount_paise bigint not null, -- The whole remainder.
  unknown_orders_paise bigint not null default 0, -- Its part of unknown orders.
  constraint payout_rests_pkey primary key (import_id, account, bank_reference_number)
);
