-- The service's rights to each table. `ops migrate` grants these rights after the migrations if the role upi_service
-- exists, see roles.sql. The service cannot access a table that is not named here, so a migration that creates a table
-- must add the table to this file.
revoke all on all tables in schema public from upi_service;

grant select on schema_migrations, merchants, merchant_logos, acquirer_accounts, partner_merchants, access_keys, settlements to upi_service;
-- The day of a key's last use is in a separate table, because the service must not change a key's secret, merchant,
-- partner or rights.
grant select, insert, update (last_used_on) on key_uses to upi_service;
-- The service changes an order's status and number of events, but not its amount and payee. The sandbox sets
-- expires_at, a right that adds nothing to the right to set the status. `for no key update` needs the right to update a
-- column. Triggers make a paid order final, and require the payment of a paid order.
grant select, insert, update (status, utr, expires_at, event_sequence, failure_reported_at, cancelled_at, unreadable_at)
  on payment_intents to upi_service;
-- The service changes the status checks, but not the link that the acquirer created, nor the link's order. A trigger
-- compares a link with its order's payee.
grant select, insert, update (status_checks, status_check_at, status_checked_at) on acquirer_intents to upi_service;
-- These tables are append-only, so that an attacker in the service cannot change the facts of a payment. The service
-- resolves exceptions by refunds and payments. Triggers check every insert by the service: a payment must belong to an order, and no
-- row may name an operator.
grant select, insert on payment_attempts, payment_exceptions, payment_resolutions, payments to upi_service;
-- The reason for a failed attempt may be added later, once; a trigger on the table rejects any other change.
grant update (failure_reason, failure_code) on payment_attempts to upi_service;
-- The acquirer's ids of a payment, the bank's reference and the instrument may be added later, once; triggers on the table
-- reject any other change.
grant update (acquirer_payment_id, acquirer_txn_id, bank_reference, bank_reference_at, learned_at, instrument)
  on payments to upi_service;
-- The service changes a refund's progress, but not its payment and amount. Triggers check new refunds, and prevent the
-- service from sending a final refund again.
grant select, insert, update (status, reference, reason, ended_at, acquirer_refund_id, sent_at, accepted_at, attempts, due_at)
  on refunds to upi_service;
-- Only an operator records that the bank returned a refund, which makes its amount refundable again. The view's tables are granted
-- too, because Citus checks them on the worker with the role of the query.
grant select on current_refunds, refund_returns, returned_amounts to upi_service;
-- The service stores disputes and their states, and what later reports add. Triggers require the payment of a dispute, and make its
-- states append-only.
grant select, insert, update (amount_paise, kind, reason_code, reason_text, respond_by, reported_at, status, updated_at, check_at)
  on disputes to upi_service;
grant select, insert on dispute_states to upi_service;
-- The service records an endpoint's failures and disables a failing endpoint, but cannot change the endpoint's URL and
-- secret. A trigger allows only an operator to enable an endpoint.
grant select, update (disabled_at, disabled_reason, failing_since) on webhook_endpoints to upi_service;
-- The service changes a delivery's progress, but not its content. A trigger compares a new event with its order or
-- refund.
grant select, insert, update (attempts, due_at, delivered_at, attempted_at, outcome, response)
  on webhook_deliveries to upi_service;
grant select, insert, update, delete on webhook_expiries to upi_service;
