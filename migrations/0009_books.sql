-- The books read these views. Only here stands which acquirer an account belongs to, and on which day a line is included.
drop view ledger;

-- Every version of every settlement line: a row of a bank's or acquirer's file. A version was valid from recorded_at until before
-- replaced_at; one that an import's undo replaced is `undone`. `item` is the UTR of the payment that the line settles; `acquirer` is
-- the account without the acquirer account, because a file may name an account where payments name none. The debt of
-- `clearing_account` changes. `gross_paise` includes fee and tax. The line is included on `day`, in India. A deduction, and a line
-- of a dispute, settle no payment.
create view settlement_lines as
-- Citus takes the names of the columns from this first part. A condition on `at` reaches an index in each part.
select mid, utr, upper(coalesce(payment_utr, utr)) as item, payment_utr is not null as names_payment, status,
       (amount_paise < 0 or coalesce(event in ('dispute', 'dispute reversal'), false)) as is_deduction, event, acquirer_of(account) collate "C" as acquirer, account,
       coalesce(paid_account, account, 'unknown') as clearing_account, bank_reference_number as reference, import_id, initiated_at as at,
       ist_day(initiated_at) as day, initiated_at, amount_paise as net_paise,
       amount_paise + coalesce(fee_paise, 0) + coalesce(tax_paise, 0) as gross_paise, fee_paise, tax_paise, recorded_at,
       'infinity'::timestamptz as replaced_at, null::integer as replaced_by_import_id, false as undone
  from settlements
 where value_date is null
 union all
select mid, utr, upper(coalesce(payment_utr, utr)), payment_utr is not null, status, (amount_paise < 0 or coalesce(event in ('dispute', 'dispute reversal'), false)), event,
       acquirer_of(account) collate "C", account, coalesce(paid_account, account, 'unknown'), bank_reference_number, import_id,
       value_date::timestamp at time zone interval '330 minutes', value_date, initiated_at, amount_paise,
       amount_paise + coalesce(fee_paise, 0) + coalesce(tax_paise, 0), fee_paise, tax_paise, recorded_at, 'infinity', null, false
  from settlements
 where value_date is not null
 union all
select mid, utr, upper(coalesce(payment_utr, utr)), payment_utr is not null, status, (amount_paise < 0 or coalesce(event in ('dispute', 'dispute reversal'), false)), event,
       acquirer_of(account) collate "C", account, coalesce(paid_account, account, 'unknown'), bank_reference_number, import_id,
       coalesce(value_date::timestamp at time zone interval '330 minutes', initiated_at),
       coalesce(value_date, ist_day(initiated_at)), initiated_at, amount_paise,
       amount_paise + coalesce(fee_paise, 0) + coalesce(tax_paise, 0), fee_paise, tax_paise, recorded_at, replaced_at,
       replaced_by_import_id, undone
  from settlement_versions;

-- The times of settlement_lines by account. Two parts with the same columns, so that PostgreSQL finds an account's first or last line
-- by the index and reads no other.
create view account_lines as
select mid, account, coalesce(value_date::timestamp at time zone interval '330 minutes', initiated_at) as at, status,
       (amount_paise < 0 or coalesce(event in ('dispute', 'dispute reversal'), false)) as is_deduction, recorded_at, 'infinity'::timestamptz as replaced_at
  from settlements
 union all
select mid, account, coalesce(value_date::timestamp at time zone interval '330 minutes', initiated_at), status,
       (amount_paise < 0 or coalesce(event in ('dispute', 'dispute reversal'), false)), recorded_at, replaced_at
  from settlement_versions;

-- The items that lines of disputes name: the UTR of the disputed payment, or the id of the dispute in upper case.
create view disputed_items as
select mid, item, min(order_id) as order_id, min(recorded_at) as recorded_at
  from (select mid, utr as item, order_id, recorded_at from disputes
         union all
        select mid, upper(dispute_id) collate "C", order_id, recorded_at from disputes) d
 group by mid, item;

-- The acquirers' debts to each merchant, as open items. A row is a movement of the item that the UTR of a payment identifies; it is
-- included on `day`, in India, and was valid from recorded_at until before replaced_at. A positive amount is owed to the merchant.
-- The sum of an item's movements is its balance; the sum of all movements up to a day is carried forward from that day. A duplicate
-- payment is a movement `second`: the acquirer has received its money for the merchant too. A movement `dispute` is the other side of a
-- line of a disputed payment, since line and dispute are known: the dispute owes the money, not the acquirer. `acquirer` places a movement in a
-- payout, and `account` in the ledger of an acquirer account.
create view ledger as
select p.mid, p.utr as item, case p.kind when 'second' then 'second' else 'payment' end as kind, p.utr as name, p.order_id,
       acquirer_of(p.acquirer) collate "C" as acquirer, p.acquirer as account, coalesce(p.paid_at, p.received_at) as at,
       ist_day(coalesce(p.paid_at, p.received_at)) as day, p.amount_paise,
       p.received_at as recorded_at, 'infinity'::timestamptz as replaced_at, null::integer as import_id,
       null::integer as replaced_by_import_id
  from payments p
 union all
select mid, item, case when is_deduction then 'deduction' else 'settlement' end, utr, null, acquirer, clearing_account, at, day, -gross_paise,
       recorded_at, replaced_at, import_id, replaced_by_import_id
  from settlement_lines
 where status = 'SUCCESS'
 union all
select mid, utr, 'refund', our_refund_id, order_id, acquirer_of(acquirer) collate "C", acquirer, ended_at,
       ist_day(ended_at), -amount_paise, ended_at, 'infinity', null, null
  from refunds
 where status = 'SUCCESS'
 union all
select t.mid, r.utr, 'refund returned', r.our_refund_id, r.order_id, acquirer_of(r.acquirer) collate "C", r.acquirer, t.returned_at,
       ist_day(t.returned_at), r.amount_paise, t.returned_at, 'infinity', null, null
  from refund_returns t
  join refunds r on r.mid = t.mid and r.our_refund_id = t.our_refund_id
 union all
select l.mid, l.item, 'dispute', l.utr, d.order_id, l.acquirer, l.clearing_account, l.at, l.day, l.gross_paise,
       greatest(l.recorded_at, d.recorded_at), l.replaced_at, l.import_id, l.replaced_by_import_id
  from settlement_lines l
  join disputed_items d on d.mid = l.mid and d.item = l.item
 where l.status = 'SUCCESS' and l.event in ('dispute', 'dispute reversal')
 union all
select mid, coalesce(utr, settlement_utr, '') collate "C", 'resolution', difference_id, order_id, null, account,
       day::timestamp at time zone interval '330 minutes', day, amount_paise, resolved_at, 'infinity', null, null
  from difference_resolutions
 where amount_paise <> 0;

-- The movements `dispute` of payments whose dispute was lost or accepted, on the day since which both are known: the merchant bears
-- these amounts. Those of a duplicate payment were the customer's.
create view lost_disputes as
select l.mid, l.name, l.order_id, l.account, s.is_second, greatest(l.at, s.at) as at, greatest(l.day, s.day) as day, l.amount_paise,
       greatest(l.recorded_at, s.recorded_at) as recorded_at, l.replaced_at
  from ledger l
  join (select distinct on (mid, item) mid, item, is_second, recorded_at, at, ist_day(at) as day
          from (select d.mid, i.item, p.kind = 'second' as is_second, t.recorded_at, t.stated_at,
                       case when t.stated_at between '2000-01-01' and t.recorded_at then t.stated_at else t.recorded_at end as at
                  from disputes d
                  join payments p on p.mid = d.mid and p.utr = d.utr
                  join dispute_states t on t.mid = d.mid and t.acquirer = d.acquirer and t.dispute_id = d.dispute_id
                 cross join lateral (values (d.utr), (upper(d.dispute_id) collate "C")) i (item)
                 where t.status in ('lost', 'accepted')) lost
         order by mid, item, recorded_at, stated_at) s
    on s.mid = l.mid and s.item = l.item
 where l.kind = 'dispute';

-- Reports of money that was not taken for a payment, or that a payment has failed after all, each with its resolution. `mid` is
-- empty where the order is unknown. `day` is the bank's, else the day of the report. A resolution by a payment explains no
-- settlement, because the payment itself is a movement.
create view money_exceptions as
select e.mid, e.exception_id, e.kind, nullif(e.order_id, '') as order_id, upper(e.utr) collate "C" as utr, e.amount_paise,
       ist_day(coalesce(e.paid_at, e.received_at)) as day, e.received_at,
       case when r.order_id is null then r.reason end as resolution, r.resolved_at
  from payment_exceptions e
  left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
 where e.kind = 'failure after success'
    or (e.utr <> '' and e.status in ('SUCCESS', '') and e.kind in ('unknown order', 'amount differs', 'UTR of another order',
        'double payment'));

-- No report counts the payments that a day file brought any more.
drop index payments_day_file_idx;

-- What closed months carry forward contains duplicate payments and their refunds from now on. In steps, because Citus joins no
-- distributed tables by a condition on times.
with closed as materialized (
  select month, closed_at, (month || '-01')::timestamp as first_day
    from closed_months
   where month in (select month from closed_items)
), duplicate as materialized (
  select mid, coalesce(paid_at, received_at) as at, received_at as recorded_at, amount_paise
    from payments
   where kind = 'second'
   union all
  select r.mid, r.ended_at, r.ended_at, -r.amount_paise
    from refunds r
    join payments p on p.mid = r.mid and p.utr = r.utr
   where r.status = 'SUCCESS' and p.kind = 'second'
)
insert into closed_items (mid, month, item, day, balance_paise)
select mid, month, 'duplicates', (first_day + interval '1 month - 1 day')::date, sum(amount_paise)::bigint
  from duplicate
  join closed
    on recorded_at <= closed_at and at < (first_day + interval '1 month') at time zone interval '330 minutes'
 group by mid, month, first_day;
