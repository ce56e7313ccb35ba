-- No version that has an installation writes these tables: settlement_versions took the place of settlement_updates, a due
-- time in webhook_deliveries that of the other two.
drop table settlement_updates;
drop table webhook_expiry_sweep;
drop table service_instances;
