-- Who delivers to an endpoint is not written down any more, by the version before neither.
alter table webhook_endpoints drop column leased_by, drop column leased_until;
