-- Reservations of orders that outlive their exchange, and of calls that run; a row ends with the settlement.
create table {schema}.admitted_orders (
  request_id uuid not null,
  account_id text not null,
  -- The call, and name and reservation of each rule, in the order of the rules.
  call text not null,
  reservations text not null,
  -- How the order has ended; null: it has not.
  ending text,
  -- A process settles it until then.
  leased_until timestamptz,
  -- The data directory whose process makes the call, of rules that outlive it; null: an order.
  owner text,
  primary key (request_id, account_id)
);
create index admitted_orders_ended on {schema}.admitted_orders (leased_until) where ending is not null;
create index admitted_orders_running on {schema}.admitted_orders (owner) where owner is not null;
