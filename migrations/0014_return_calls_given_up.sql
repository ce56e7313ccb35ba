-- Finds the return calls that were given up, which are few. Payments of merchants with a webhook wait while the table is read.
create index webhook_deliveries_given_up_idx on webhook_deliveries (attempted_at)
  where endpoint_id = 'return-call' and due_at is null and delivered_at is null;
