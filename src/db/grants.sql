-- What the service may do with each table. `ops migrate` applies it after the migrations, where the role upi_service exists:
-- see roles.sql. A table that is not named here is out of the service's reach, so a migration that adds a table decides
-- that here too.
revoke all on all tables in schema public from upi_service;

grant select on schema_migrations, merchants, partner_merchants, access_keys, settlements to upi_service;
-- Of a key only the day of its last use: neither its secret, its owner nor its rights.
grant update (last_used_on) on access_keys to upi_service;
-- Shown on the operator's page. The audit is not: who breaks into the service learns nothing of the operators.
grant select on settlement_imports, settlement_versions, bank_holidays, difference_resolutions
  to upi_service;
-- Updates of an order's outcome and of its number of events; of neither its amount nor its payee. expires_at is for the
-- sandbox, which can end the time to pay: whoever may set the status gains nothing by it. The right to update a column
-- is also needed for `for no key update`.
grant select, insert, update (status, utr, expires_at, event_sequence, fail_told_at) on payment_intents to upi_service;
-- Updates of the enquiries; the link and its owner stay as the acquirer gave them.
grant select, insert, update (enquiries, enquire_at) on acquirer_intents to upi_service;
-- Append-only: what was once known of a payment can be changed by nobody who breaks into the service. A refund ends
-- exceptions. Triggers hold what it inserts: a payment is of an order, and it ends exceptions in no person's name.
grant select, insert on payment_attempts, payment_changes, payment_exceptions, payment_resolutions, payments
  to upi_service;
-- How the acquirer names a payment may be learned later, once; triggers of the table refuse any other change.
grant update (acquirer_payment_id, acquirer_txn_id) on payments to upi_service;
-- Updates of a refund's progress; its payment and amount stay as they were decided. Triggers hold what it makes, and that what
-- went back, or has failed, is not sent again.
grant select, insert, update (status, reference, reason, ended_at, acquirer_refund_id, sent_at, attempts, due_at)
  on refunds to upi_service;
-- Updates of an endpoint's failures and of its switching off; its address and secret stay as the operator set them.
grant select, update (disabled_at, disabled_reason, failing_since) on webhook_endpoints to upi_service;
-- Updates of a delivery's progress; its content stays as it was written.
grant select, insert, update (attempts, due_at, delivered_at, attempted_at, outcome, answer)
  on webhook_deliveries to upi_service;
grant select, insert, update, delete on webhook_expiries to upi_service;
