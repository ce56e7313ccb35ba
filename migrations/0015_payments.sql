-- One row for each payment that counts: what made an order paid, in time or late, and a second payment of a paid order. Its
-- key says which order a UTR has paid. Append-only.
create table payments (
  mid text not null,
  -- In upper case. Byte order, whatever the server's locale.
  utr text collate "C" not null,
  order_id text not null,
  amount_paise integer not null,
  -- When the bank says that the money moved; null where it did not say.
  paid_at timestamptz,
  heard_at timestamptz not null,
  kind text not null,
  acquirer text not null,
  constraint payments_pkey primary key (mid, utr),
  constraint payments_kind_check check (kind in ('first', 'late', 'second'))
);

create index payments_mid_paid_at_utr_idx on payments (mid, paid_at, utr);

-- Without a foreign key, which would lock each intent. An instance of the version before writes no row here: the unique index
-- of the intents' UTRs stays, and the next version's migration runs these two statements again.
insert into payments (mid, utr, order_id, amount_paise, paid_at, heard_at, kind, acquirer)
select i.mid, upper(i.utr), i.order_id, i.amount * 100 + i.paise, c.paid_at, coalesce(c.changed_at, i.created_at),
       case when e.order_id is null then 'first' else 'late' end, coalesce(a.acquirer, 'direct')
  from payment_intents i
  left join payment_changes c on c.mid = i.mid and c.order_id = i.order_id and c.status = 'SUCCESS'
  left join payment_exceptions e
    on e.mid = i.mid and e.order_id = i.order_id and e.kind = 'late payment' and e.utr = upper(i.utr)
  left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
 where i.utr is not null
on conflict do nothing;

insert into payments (mid, utr, order_id, amount_paise, paid_at, heard_at, kind, acquirer)
select e.mid, e.utr, e.order_id, round(e.amount * 100)::integer, e.paid_at, e.received_at, 'second',
       coalesce(a.acquirer, 'direct')
  from payment_exceptions e
  left join acquirer_intents a on a.mid = e.mid and a.order_id = e.order_id
 where e.kind = 'double payment' and e.utr <> ''
on conflict do nothing;

create trigger payments_append_only before update or delete or truncate on payments
  for each statement execute function refuse_to_rewrite();
