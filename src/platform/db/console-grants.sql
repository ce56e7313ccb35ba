-- The rights of the role of `ops console` to each table. `ops migrate` grants these rights after the migrations if the role
-- upi_console exists, see roles.sql. The console reads and changes what its commands read and change, and nothing else. A command that
-- needs another right must add it to this file.
revoke all on all tables in schema public from upi_console;

grant select on schema_migrations, merchants, partners, partner_merchants, contract_rates, bank_holiday_changes, bank_holidays,
  file_layouts, current_refunds, returned_amounts, settlement_lines, account_lines, ledger, disputed_items, lost_disputes, money_exceptions to upi_console;
-- The console shows when keys expire, but never the hash of a secret.
grant select (public_key, mid, pid, label, rights, expires_on, created_at, revoked_at) on access_keys to upi_console;
grant select on key_uses to upi_console;
-- Sign-in reads operators' keys. Only `ops keys` creates and revokes them.
grant select on operator_keys to upi_console;
-- A status check and an import from an acquirer decrypt the account's secrets.
grant select on acquirer_accounts to upi_console;

-- Orders without their customer. `for no key update` needs the right to update a column.
grant select (mid, order_id, merchant_order_id, amount_paise, note, payee_name, created_at, expires_at, status, utr, cancelled_at,
    failure_reported_at, unreadable_at, event_sequence),
  update (status, utr, event_sequence, unreadable_at)
  on payment_intents to upi_console;
grant select, update (status_checks, status_check_at, status_checked_at) on acquirer_intents to upi_console;
-- Append-only tables, for the changes of an operator.
-- All rights to insert are for whole tables, because Citus names every column.
grant select, insert on payments, payment_attempts, payment_exceptions, payment_resolutions, refund_returns, dispute_states, difference_resolutions,
  audit_commands, audit_outcomes to upi_console;
-- On Citus, `on conflict do nothing` on a reference table needs the right to update the table, whose trigger rejects every update.
grant update on audit_outcomes to upi_console;
-- What a later report adds once; triggers on the tables reject any other change.
grant update (failure_reason, failure_code) on payment_attempts to upi_console;
grant update (acquirer_payment_id, acquirer_txn_id, bank_reference, bank_reference_at, learned_at, instrument) on payments to upi_console;
grant select, insert, update (status, reference, reason, ended_at, acquirer_refund_id, sent_at, attempts, due_at)
  on refunds to upi_console;
grant select, insert, update (amount_paise, kind, reason_code, reason_text, respond_by, reported_at, status, updated_at, check_at)
  on disputes to upi_console;

-- Endpoints without their secrets.
grant select (mid, endpoint_id, kind, url, label, created_at, disabled_at, disabled_reason, failing_since)
  on webhook_endpoints to upi_console;
grant select, insert, update (attempts, due_at, delivered_at) on webhook_deliveries to upi_console;
grant select, update (final_at) on webhook_expiries to upi_console;

-- Imports, and their undo. The right to delete, and on statement_imports the right to update the table, allow their locks.
grant select, insert, update (status, fee_paise, tax_paise, payment_utr, account, paid_account, event, value_date, import_id,
  recorded_at), delete
  on settlements to upi_console;
grant select, insert on settlement_versions, settlement_import_bases, payout_rests to upi_console;
grant select, insert, update (undone_at, undone_by) on settlement_imports to upi_console;
grant select, insert, update on statement_imports to upi_console;
grant select, insert, update (matched_payout), delete on statement_lines to upi_console;

-- The lock of a close needs the right to update the table, whose trigger rejects every update.
grant select, insert, update on closed_months to upi_console;
grant select, insert on closed_items, closed_balances to upi_console;
