-- The service's rights to each table. `ops migrate` applies them after the migrations if the role upi_service exists, see
-- roles.sql. The service cannot reach a table that is not named here, so a migration with a new table has to name it.
revoke all on all tables in schema public from upi_service;

grant select on schema_migrations, merchants, acquirer_accounts, partner_merchants, access_keys, settlements to upi_service;
-- The day of a key's last use is in its own table: the service must not change a key's secret, merchant, partner or rights.
grant select, insert, update (last_used_on) on key_uses to upi_service;
-- Tables of the operator dashboard. The audit is left out: an attacker in the service must not learn about operators.
grant select on settlement_imports, settlement_versions, bank_holidays, bank_holiday_changes, difference_resolutions,
  settlement_lines, ledger, money_exceptions, closed_items, merchant_fees to upi_service;
-- The service must not read which operator closed a month, nor its figures.
grant select (month, closed_at) on closed_months to upi_service;
-- An order's status and number of events change, its amount and payee do not. The sandbox sets expires_at, which allows
-- nothing that setting the status does not allow. `for no key update` needs the right to update a column. Triggers make a paid order final,
-- and require its payment.
grant select, insert, update (status, utr, expires_at, event_sequence, failure_reported_at, cancelled_at, unreadable_at)
  on payment_intents to upi_service;
-- The status checks change; the link and its order stay as the acquirer created them. A trigger compares a link with its
-- order's payee.
grant select, insert, update (status_checks, status_check_at, status_checked_at) on acquirer_intents to upi_service;
-- Append-only: an attacker in the service cannot change the facts of a payment. The service resolves exceptions by refunds.
-- Triggers check its inserts: a payment belongs to an order, and no row names an operator.
grant select, insert on payment_attempts, payment_exceptions, payment_resolutions, payments to upi_service;
-- The reason of a failed attempt may be reported later, once; a trigger of the table rejects any other change.
grant update (failure_reason, failure_code) on payment_attempts to upi_service;
-- The acquirer's ids of a payment and the bank's reference may arrive later, once; triggers of the table reject any other change.
grant update (acquirer_payment_id, acquirer_txn_id, bank_reference) on payments to upi_service;
-- A refund's progress changes; its payment and amount do not. Triggers check new refunds, and that a final refund is not
-- sent again.
grant select, insert, update (status, reference, reason, ended_at, acquirer_refund_id, sent_at, attempts, due_at)
  on refunds to upi_service;
-- The service records an endpoint's failures and disables it; its URL and secret stay as the operator set them. A trigger
-- lets only an operator enable it.
grant select, update (disabled_at, disabled_reason, failing_since) on webhook_endpoints to upi_service;
-- A delivery's progress changes; its content does not. A trigger compares a new event with its order or refund.
grant select, insert, update (attempts, due_at, delivered_at, attempted_at, outcome, response)
  on webhook_deliveries to upi_service;
grant select, insert, update, delete on webhook_expiries to upi_service;
