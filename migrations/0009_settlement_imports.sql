-- Nullable and without defaults, so no row is written, and lists wait for milliseconds.
alter table settlements
  -- What the bank kept of the payment or payout, and the tax on it. The amount is what remains.
  add column fee numeric(14, 2),
  add column tax numeric(14, 2),
  -- The UTR of the payment that was settled, where it is not the row's own. `utr` identifies the row: where several payments
  -- share one payout, the payout's UTR is in bank_reference_number.
  add column payment_utr text collate "C",
  -- The import that stored it, or changed it last; null for those of earlier versions.
  add column import_id integer;
alter table settlements add constraint settlements_fee_check check (fee >= 0) not valid;
alter table settlements add constraint settlements_tax_check check (tax >= 0) not valid;
alter table settlements
  add constraint settlements_payment_utr_check
  check (payment_utr ~ '^[A-Za-z0-9]+$' and octet_length(payment_utr) <= 35) not valid;

-- The files that were imported. Numbered from 1, without gaps, because imports take turns.
create table settlement_imports (
  import_id integer not null,
  imported_at timestamptz not null,
  imported_by text not null,
  -- The file's name without its folder; `-` for standard input.
  file text not null,
  -- In hex.
  sha256 text not null,
  inserted bigint not null,
  unchanged bigint not null,
  updated bigint not null,
  undone_at timestamptz,
  undone_by text,
  constraint settlement_imports_pkey primary key (import_id),
  constraint settlement_imports_undone_check check (num_nonnulls(undone_at, undone_by) in (0, 2))
);

-- The earlier imports whose rows an import repeated or changed: they cannot be undone while it stands.
create table settlement_import_bases (
  import_id integer not null,
  on_import_id integer not null,
  constraint settlement_import_bases_pkey primary key (import_id, on_import_id)
);

-- What a settlement was before an import changed it, so that the import can be undone. No foreign key: each row is written from
-- the settlement itself, and the check would lock every changed settlement once more.
create table settlement_updates (
  mid text not null,
  utr text collate "C" not null,
  -- The import that changed it.
  import_id integer not null,
  -- The import_id that the settlement had until then.
  stored_import_id integer,
  status text not null,
  fee numeric(14, 2),
  tax numeric(14, 2),
  payment_utr text collate "C",
  constraint settlement_updates_pkey primary key (mid, utr, import_id)
);
