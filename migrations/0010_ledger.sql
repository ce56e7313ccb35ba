drop view ledger;
-- The acquirers' debts to each merchant, as open items. A row is a movement of the item that the UTR of a payment identifies; it is
-- included on `day`, in India, and was valid from recorded_at until before replaced_at. A positive amount is owed to the merchant.
-- The sum of an item's movements is its balance; the sum of all movements up to a day is carried forward from that day. A duplicate
-- payment is a movement `second`: the acquirer has received its money for the merchant too.
create view ledger as
select p.mid, p.utr as item, case p.kind when 'second' then 'second' else 'payment' end as kind, p.utr as name, p.order_id,
       split_part(p.acquirer, ':', 1) collate "C" as acquirer, coalesce(p.paid_at, p.received_at) as at,
       (coalesce(p.paid_at, p.received_at) at time zone interval '330 minutes')::date as day, p.amount_paise,
       p.received_at as recorded_at, 'infinity'::timestamptz as replaced_at, null::integer as import_id, null::integer as replaced_by_import_id
  from payments p
 union all
select mid, item, case when is_deduction then 'deduction' else 'settlement' end, utr, null, acquirer, at, day, -gross_paise,
       recorded_at, replaced_at, import_id,
       replaced_by_import_id
  from settlement_lines
 where status = 'SUCCESS'
 union all
select mid, utr, 'refund', our_refund_id, order_id, split_part(acquirer, ':', 1) collate "C", ended_at,
       (ended_at at time zone interval '330 minutes')::date, -amount_paise, ended_at, 'infinity', null, null
  from refunds
 where status = 'SUCCESS'
 union all
select mid, coalesce(utr, settlement_utr, '') collate "C", 'resolution', difference_id, order_id, null,
       day::timestamp at time zone interval '330 minutes', day, amount_paise, resolved_at, 'infinity', null, null
  from difference_resolutions
 where amount_paise <> 0;


-- The kinds of discrepancies that are stored got the terms of accounting. The table is append-only.
alter table difference_resolutions disable trigger difference_resolutions_append_only;
update difference_resolutions
   set kind = case kind
                when 'not settled' then 'missing settlement'
                when 'settled twice' then 'duplicate settlement'
                when 'amount differs' then 'amount mismatch'
                when 'fee differs' then 'fee mismatch'
                when 'no known payment' then 'unknown payment'
                when 'sums differ' then 'payout total'
                when 'taken back' then 'reversal'
                else kind
              end;
alter table difference_resolutions enable trigger difference_resolutions_append_only;
