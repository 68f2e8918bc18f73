-- Reservations of orders that outlive their exchange; a row ends with the settlement.
create table {schema}.admitted_orders (
  request_id uuid primary key,
  -- The call, and name and reservation of each rule, in the order of the rules.
  call text not null,
  reservations text not null,
  -- How the order has ended; null: it has not.
  ending text,
  -- A process settles it until then.
  leased_until timestamptz
);
create index admitted_orders_ended on {schema}.admitted_orders (leased_until) where ending is not null;
