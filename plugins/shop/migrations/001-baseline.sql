-- Redeem codes and who redeemed them. Amounts are nano-USD.

create table {schema}.codes (
  id uuid primary key default gen_random_uuid(),
  -- The code itself is shown once and not kept.
  hash text not null unique,
  prefix text not null,
  batch text not null,
  kind text not null check (kind in ('balance', 'plan', 'days')),
  amount bigint check (amount > 0),
  -- How long the money lasts once redeemed; null: it does not expire.
  money_lasts_ms bigint check (money_lasts_ms > 0),
  plan text,
  days integer check (days > 0),
  max_uses integer not null check (max_uses > 0),
  once_per_account boolean not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz not null,
  check ((kind = 'balance') = (amount is not null)),
  check ((kind = 'balance') = (plan is null)),
  check ((kind = 'days') = (days is not null))
);
create index codes_batch on {schema}.codes (batch);
-- For lists of all codes, newest first.
create index codes_at on {schema}.codes (created_at, id);

create table {schema}.redemptions (
  code_id uuid not null references {schema}.codes (id),
  -- Counts the uses of the code from 1: two uses can never have one number.
  number integer not null check (number > 0),
  account_id text not null,
  redeemed_at timestamptz not null,
  primary key (code_id, number)
);
