-- Keys with which operators sign in to the console. The service's role has no right to the table, so that an attacker in the
-- service can neither read nor create such a key.
create table operator_keys (
  public_key text not null constraint operator_keys_pkey primary key,
  secret_hash bytea not null constraint operator_keys_secret_hash_check check (octet_length(secret_hash) = 32), -- SHA-256
  operator text not null, -- The name that the audit stores for the changes.
  label text,
  rights text[] not null constraint operator_keys_rights_check check (rights in ('{read}', '{read,act}')),
  -- The last day on which the key is valid, in India.
  expires_on date,
  created_at timestamptz not null,
  revoked_at timestamptz
);
