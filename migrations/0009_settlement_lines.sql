-- Every version of every settlement line: a row of a bank's or acquirer's file. A version was valid from recorded_at until before
-- replaced_at; one that an import's undo replaced is `undone`. `item` is the UTR of the payment that the line settles; `acquirer` is
-- the account without the acquirer account, because a file may name an account where payments name none. `gross_paise` includes fee
-- and tax. The line is included on `day`, in India.
create view settlement_lines as
-- Citus takes the names of the columns from this first part. A condition on `at` reaches an index in each part.
select mid, utr, upper(coalesce(payment_utr, utr)) as item, payment_utr is not null as names_payment, status,
       amount_paise < 0 as is_deduction, split_part(account, ':', 1) collate "C" as acquirer, account,
       bank_reference_number as reference, import_id, initiated_at as at,
       (initiated_at at time zone interval '330 minutes')::date as day, initiated_at, amount_paise as net_paise,
       amount_paise + coalesce(fee_paise, 0) + coalesce(tax_paise, 0) as gross_paise, fee_paise, tax_paise, recorded_at,
       'infinity'::timestamptz as replaced_at, null::integer as replaced_by_import_id, false as undone
  from settlements
 where value_date is null
 union all
select mid, utr, upper(coalesce(payment_utr, utr)), payment_utr is not null, status, amount_paise < 0,
       split_part(account, ':', 1) collate "C", account, bank_reference_number, import_id,
       value_date::timestamp at time zone interval '330 minutes', value_date, initiated_at, amount_paise,
       amount_paise + coalesce(fee_paise, 0) + coalesce(tax_paise, 0), fee_paise, tax_paise, recorded_at, 'infinity', null, false
  from settlements
 where value_date is not null
 union all
select mid, utr, upper(coalesce(payment_utr, utr)), payment_utr is not null, status, amount_paise < 0,
       split_part(account, ':', 1) collate "C", account, bank_reference_number, import_id,
       coalesce(value_date::timestamp at time zone interval '330 minutes', initiated_at),
       coalesce(value_date, (initiated_at at time zone interval '330 minutes')::date), initiated_at, amount_paise,
       amount_paise + coalesce(fee_paise, 0) + coalesce(tax_paise, 0), fee_paise, tax_paise, recorded_at, replaced_at,
       replaced_by_import_id, undone
  from settlement_versions;

-- Reports of money that was not taken for a payment, or that a payment has failed after all, each with its resolution. `mid` is
-- empty where the order is unknown. `day` is the bank's, else the day of the report.
create view money_exceptions as
select e.mid, e.exception_id, e.kind, nullif(e.order_id, '') as order_id, upper(e.utr) collate "C" as utr, e.amount_paise,
       (coalesce(e.paid_at, e.received_at) at time zone interval '330 minutes')::date as day, e.received_at,
       r.reason as resolution, r.resolved_at
  from payment_exceptions e
  left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
 where e.kind = 'failure after success'
    or (e.utr <> '' and e.status in ('SUCCESS', '') and e.kind in ('unknown order', 'amount differs', 'UTR of another order',
        'double payment'));
