-- The data directory whose process makes the call, of rules that outlive it; null: an order.
alter table {schema}.admitted_orders add column owner text;
create index admitted_orders_running on {schema}.admitted_orders (owner) where owner is not null;
