-- The baseline, files 0001 to 0009, has one file for each area. Later migrations change its tables in files of their own.
--
-- Every constraint has a name, because the code and the operator refer to it by name. Primary keys and unique constraints of tables
-- that grow begin with mid, so that Citus can distribute them by mid. Every amount is a whole number of paise in a bigint column
-- `…_paise`. Triggers on `current_user` limit what an attacker who has the password of the service or of the console can write, beyond
-- the rights of grants.sql and console-grants.sql: those that protect money apply to both, and those that reject an operator's name
-- to the service only. Their functions run as the caller, because with `security definer` current_user would be the owner, and
-- qualify names, because the caller sets search_path.

create function refuse_to_rewrite() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name;
end
$$;

-- The condition is in the trigger, which passes the message.
create function refuse_row() returns trigger language plpgsql as $$
begin
  raise exception using errcode = 'check_violation', message = tg_argv[0];
end
$$;

-- Without settings of their own, so that PostgreSQL inlines these functions: a plan is that of the expression.

-- The day in India of a moment.
create function ist_day(moment timestamptz) returns date language sql immutable parallel safe as $$
  select (moment at time zone interval '330 minutes')::date
$$;

-- The moment at which a day begins in India.
create function start_of_ist_day(day date) returns timestamptz language sql immutable parallel safe as $$
  select day::timestamp at time zone interval '330 minutes'
$$;

-- The acquirer of an acquirer account such as `setu:acme`.
create function acquirer_of(account text) returns text language sql immutable parallel safe as $$
  select split_part(account, ':', 1)
$$;

-- Whether a line of a settlement file deducts money, or concerns a dispute.
create function is_deduction(amount_paise bigint, event text) returns boolean language sql immutable parallel safe as $$
  select amount_paise < 0 or coalesce(event in ('dispute', 'dispute reversal'), false)
$$;

create table merchants (
  mid text not null constraint merchants_pkey primary key constraint merchants_mid_check check (mid ~ '^[A-Za-z0-9_-]{1,64}$'),
  -- The UPI parameter pn carries at most 99 characters.
  name text not null constraint merchants_name_check check (char_length(name) between 1 and 99),
  vpa text not null constraint merchants_vpa_check check (vpa ~ '^[A-Za-z0-9._-]{1,255}@[A-Za-z0-9.-]{1,64}$'),
  mcc text not null constraint merchants_mcc_check check (mcc ~ '^[0-9]{4}$'),
  -- UPI addresses that an acquirer's link may pay besides `vpa`; a `*` before the @ matches any text.
  payees text[] not null default '{}',
  dynamic_qr text not null constraint merchants_dynamic_qr_check check (dynamic_qr in ('link', 'image')),
  -- How requests format amounts and telephone numbers.
  input text not null default 'strict' constraint merchants_input_check check (input in ('strict', 'shop')),
  -- Null for the service's own setting.
  expiry_minutes integer constraint merchants_expiry_minutes_check check (expiry_minutes between 1 and 1440),
  -- The largest expiry_minutes that the merchant may request. The acquirer may allow less, which the code checks.
  max_expiry_minutes integer not null default 1440 constraint merchants_max_expiry_minutes_check
    check (max_expiry_minutes between 5 and 43200),
  -- The largest amount of an order, in whole rupees.
  max_amount_paise bigint not null default 10000000,
  -- An acquirer such as `setu`, with an acquirer account such as `setu:acme`. The code decides which acquirers there are.
  acquirer text not null default 'direct',
  -- The acquirer's own id of the merchant, if it has one.
  acquirer_merchant_id text constraint merchants_acquirer_merchant_id_check check (acquirer_merchant_id ~ '^[A-Za-z0-9_.-]{1,64}$'),
  -- The acquirer that creates the link if `acquirer` certainly created none.
  fallback_acquirer text,
  fallback_acquirer_merchant_id text,
  -- The brand on the merchant's pay pages.
  brand_colour text constraint merchants_brand_colour_check check (brand_colour ~ '^#[0-9a-f]{6}$'),
  brand_website text constraint merchants_brand_website_check
    check (brand_website ~ '^https://[^\s"<>]+$' and char_length(brand_website) <= 255),
  -- An e-mail address or a telephone number.
  brand_support text constraint merchants_brand_support_check
    check (brand_support ~ '^[^\s@]+@[^\s@]+$|^\+?[0-9](?:[ -]?[0-9]){2,14}$' and char_length(brand_support) <= 254),
  -- SHA-256 of the logo in merchant_logos, so that a pay page needs no other table to link it.
  brand_logo text constraint merchants_brand_logo_check check (brand_logo ~ '^[0-9a-f]{64}$'),
  created_at timestamptz not null,
  disabled_at timestamptz,
  constraint merchants_max_amount_check check (max_amount_paise between 100 and 50000000 and max_amount_paise % 100 = 0),
  constraint merchants_acquirer_check check (acquirer ~ '^[a-z0-9-]{1,32}(:[A-Za-z0-9_-]{1,64})?$'),
  constraint merchants_fallback_acquirer_check check (fallback_acquirer ~ '^[a-z0-9-]{1,32}(:[A-Za-z0-9_-]{1,64})?$'),
  constraint merchants_fallback_acquirer_merchant_id_check check (fallback_acquirer_merchant_id ~ '^[A-Za-z0-9_.-]{1,64}$')
);

-- Separate from merchants, which many statements read, and which Citus copies to every node.
create table merchant_logos (
  mid text not null constraint merchant_logos_pkey primary key constraint merchant_logos_mid_fkey references merchants (mid),
  sha256 text not null constraint merchant_logos_sha256_check check (sha256 ~ '^[0-9a-f]{64}$'),
  png bytea not null constraint merchant_logos_png_check check (octet_length(png) between 1 and 32768)
);

-- Acquirer accounts besides those of the environment. merchants.acquirer and the acquirer of orders, payments and refunds contain
-- the name.
create table acquirer_accounts (
  name text not null constraint acquirer_accounts_pkey primary key,
  -- Encrypted: see encryption.ts. The earlier secrets are valid for notifications too until the operator finishes the rotation.
  secrets bytea not null,
  earlier_secrets bytea,
  created_at timestamptz not null,
  disabled_at timestamptz,
  constraint acquirer_accounts_name_check check (name ~ '^[a-z0-9-]{1,32}:[A-Za-z0-9_-]{1,64}$')
);

create table partners (
  pid text not null constraint partners_pkey primary key constraint partners_pid_check check (pid ~ '^[A-Za-z0-9_-]{1,64}$'),
  name text not null constraint partners_name_check check (char_length(name) between 1 and 99),
  created_at timestamptz not null
);

create table partner_merchants (
  pid text not null constraint partner_merchants_pid_fkey references partners (pid),
  mid text not null constraint partner_merchants_mid_fkey references merchants (mid),
  linked_at timestamptz not null default now(),
  constraint partner_merchants_pkey primary key (pid, mid)
);

-- API keys of merchants and partners.
create table access_keys (
  public_key text not null constraint access_keys_pkey primary key,
  -- SHA-256 of the secret, which is 256 random bits and is never stored.
  secret_hash bytea not null constraint access_keys_secret_hash_check check (octet_length(secret_hash) = 32),
  mid text constraint access_keys_mid_fkey references merchants (mid),
  pid text constraint access_keys_pid_fkey references partners (pid),
  label text,
  -- A partner's key can only list.
  rights text[] not null,
  -- The last day on which the key is valid, in India.
  expires_on date,
  created_at timestamptz not null,
  revoked_at timestamptz,
  constraint access_keys_one_owner_check check (num_nonnulls(mid, pid) = 1),
  constraint access_keys_rights_check check (
    rights <@ '{create,status,cancel,list,refund}' and cardinality(rights) > 0 and (pid is null or rights = '{list}'))
);

-- The day in India on which a key was last used. The service writes it at most once a day for each key. No foreign key: on Citus a
-- role that writes a reference table also needs the right to change the tables that it refers to.
create table key_uses (
  public_key text not null constraint key_uses_pkey primary key,
  last_used_on date not null
);
