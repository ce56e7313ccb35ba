-- An acquirer's payment id identifies a payment. Where the bank's reference is missing, or belongs to another payment of the
-- merchant, `utr` is that id, and the reference stands beside it as soon as it is known.
alter table payments add column bank_reference text collate "C";
create index payments_bank_reference_idx on payments (mid, bank_reference) where bank_reference is not null;
-- Second payments are few. The order's own payment is found by the order's utr.
create index payments_second_idx on payments (mid, order_id) where kind = 'second';

create trigger payments_bank_reference_is_kept before update of bank_reference on payments for each row
  when (new.bank_reference is distinct from coalesce(old.bank_reference, new.bank_reference))
  execute function refuse_row('the bank reference of a payment is set once');

-- Since when the acquirer's last status response about an open order could not be read. Until it ends, the order stays open.
alter table payment_intents add column unreadable_at timestamptz;

-- A merchant resolves the exception of such an order by cancelling it.
drop trigger payment_resolutions_of_service on payment_resolutions;
create trigger payment_resolutions_of_service before insert on payment_resolutions for each row
  when (current_user = 'upi_service' and new.resolved_by not in ('notification', 'enquiry', 'answer', 'merchant', 'sandbox'))
  execute function refuse_row('a person ends exceptions by ops');
