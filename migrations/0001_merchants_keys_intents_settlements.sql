-- Every constraint is named, because the code and the operator speak of it by name.
-- The unique constraints of tables that grow begin with mid, so that the schema can be spread by mid over several servers.

create table merchants (
  mid text not null,
  name text not null,
  vpa text not null,
  mcc text not null,
  dynamic_qr text not null,
  created_at timestamptz not null,
  disabled_at timestamptz,
  constraint merchants_pkey primary key (mid),
  constraint merchants_mid_check check (mid ~ '^[A-Za-z0-9_-]{1,64}$'),
  -- 99 characters is the most that the UPI parameter pn carries.
  constraint merchants_name_check check (char_length(name) between 1 and 99),
  constraint merchants_vpa_check check (vpa ~ '^[A-Za-z0-9._-]{1,255}@[A-Za-z0-9.-]{1,64}$'),
  constraint merchants_mcc_check check (mcc ~ '^[0-9]{4}$'),
  constraint merchants_dynamic_qr_check check (dynamic_qr in ('link', 'image'))
);

create table partners (
  pid text not null,
  name text not null,
  created_at timestamptz not null,
  constraint partners_pkey primary key (pid),
  constraint partners_pid_check check (pid ~ '^[A-Za-z0-9_-]{1,64}$'),
  constraint partners_name_check check (char_length(name) between 1 and 99)
);

create table partner_merchants (
  pid text not null,
  mid text not null,
  constraint partner_merchants_pkey primary key (pid, mid),
  constraint partner_merchants_pid_fkey foreign key (pid) references partners (pid),
  constraint partner_merchants_mid_fkey foreign key (mid) references merchants (mid)
);

create table access_keys (
  public_key text not null,
  -- SHA-256 of the secret; the secret itself is 256 random bits and is never stored.
  secret_hash bytea not null,
  mid text,
  pid text,
  label text,
  created_at timestamptz not null,
  revoked_at timestamptz,
  constraint access_keys_pkey primary key (public_key),
  constraint access_keys_secret_hash_check check (octet_length(secret_hash) = 32),
  constraint access_keys_one_owner_check check (num_nonnulls(mid, pid) = 1),
  constraint access_keys_mid_fkey foreign key (mid) references merchants (mid),
  constraint access_keys_pid_fkey foreign key (pid) references partners (pid)
);

create table payment_intents (
  mid text not null,
  order_id text not null,
  -- The merchant's order_id; our order_id stands in where the merchant sent none.
  merchant_order_id text not null,
  amount integer not null,
  redirect_url text not null,
  note text not null,
  customer_name text not null,
  customer_email text not null,
  customer_mobile text not null,
  -- The payee as it was when the intent was made: a later change of the merchant must not redirect an open payment.
  payee_vpa text not null,
  payee_name text not null,
  payee_mcc text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint payment_intents_pkey primary key (mid, order_id),
  constraint payment_intents_merchant_order_id_key unique (mid, merchant_order_id),
  constraint payment_intents_mid_fkey foreign key (mid) references merchants (mid),
  constraint payment_intents_amount_check check (amount between 1 and 100000)
);

-- The QR, the pay page and the bank know an intent by our unguessable order_id alone.
create index payment_intents_order_id_idx on payment_intents (order_id);

create table settlements (
  mid text not null,
  -- Byte order, whatever the server's locale: the list promises it.
  utr text collate "C" not null,
  amount numeric(14, 2) not null,
  bank_reference_number text not null,
  status text not null,
  initiated_at timestamptz not null,
  created_at timestamptz not null,
  constraint settlements_pkey primary key (mid, utr),
  constraint settlements_mid_fkey foreign key (mid) references merchants (mid),
  -- The lengths stand apart from the patterns: '{1,35}' was measured at 2.2 µs a row, these two together at 0.25.
  constraint settlements_utr_check check (utr ~ '^[A-Za-z0-9]+$' and octet_length(utr) <= 35),
  constraint settlements_amount_check check (amount >= 0),
  constraint settlements_bank_reference_number_check
    check (bank_reference_number ~ '^[A-Za-z0-9 ./_-]+$' and octet_length(bank_reference_number) <= 64),
  constraint settlements_status_check check (status in ('PENDING', 'SUCCESS', 'FAILED'))
);

-- Serves the list of one merchant in the order it is given out, touching only its rows.
create index settlements_mid_initiated_at_utr_idx on settlements (mid, initiated_at, utr);
