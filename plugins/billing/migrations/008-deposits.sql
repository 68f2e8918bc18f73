-- Holds of work that outlives its exchange, its process and its node: no journal has them. A row comes with its HOLD and goes
-- with its SETTLE or VOID, in the transactions of those who work.

create table {schema}.deposits (
  request_id uuid primary key,
  account_id text not null,
  held bigint not null check (held >= 0),
  -- What the charge depends on, as it was when the money was set aside: price version, ratio, bounds.
  terms json not null,
  created_at timestamptz not null
);
