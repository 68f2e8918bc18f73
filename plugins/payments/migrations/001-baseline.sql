-- Payments from outside, and what of them was paid back. Amounts are nano-USD.

create table {schema}.payment_orders (
  id uuid primary key,
  account_id text not null,
  -- Names the wish to pay: a second one of the same reference finds this order.
  reference text not null unique,
  amount bigint not null check (amount > 0),
  -- `creating`: the payment service may not know of it. `mismatch`: another sum was paid than was ordered; nothing was credited.
  state text not null check (state in ('creating', 'open', 'paid', 'expired', 'mismatch')),
  -- The payment service's names of the page on which it is paid, and of the payment.
  session text unique,
  payment text unique,
  url text,
  created_at timestamptz not null,
  paid_at timestamptz,
  -- When the payment service was asked for it last.
  looked_at timestamptz not null,
  check ((state = 'paid') = (paid_at is not null)),
  check (state not in ('open', 'paid', 'mismatch') or session is not null)
);
create index payment_orders_account on {schema}.payment_orders (account_id, created_at, id);
create index payment_orders_at on {schema}.payment_orders (created_at, id);
create index payment_orders_open on {schema}.payment_orders (looked_at) where state in ('creating', 'open');
create index payment_orders_paid on {schema}.payment_orders (looked_at) where state = 'paid';

-- Refunds and disputes, by the payment service's ids.
create table {schema}.payment_withdrawals (
  id text primary key,
  order_id uuid not null references {schema}.payment_orders (id),
  amount bigint not null check (amount > 0),
  -- `back`: it came to nothing, and what was taken was given back.
  state text not null default 'taking' check (state in ('taking', 'taken', 'back'))
);
create index payment_withdrawals_order on {schema}.payment_withdrawals (order_id);

-- What of them is taken from which credit of the account: written before it is taken, and less where the rest was spent.
create table {schema}.payment_takings (
  withdrawal text not null references {schema}.payment_withdrawals (id),
  credit text not null,
  amount bigint not null check (amount >= 0),
  done boolean not null default false,
  primary key (withdrawal, credit)
);
