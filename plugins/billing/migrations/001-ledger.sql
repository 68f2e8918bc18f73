-- Accounts' balances, and the immutable rows that they are the sums of. Amounts are nano-USD.

create table {schema}.balances (
  account_id text primary key,
  -- What may still be spent: credits less charges less open holds. Below zero only by a settlement.
  balance bigint not null default 0
);

create table {schema}.grants (
  id uuid primary key default gen_random_uuid(),
  account_id text not null,
  kind text not null,
  amount bigint not null check (amount > 0),
  reason text not null,
  -- Names the event that the money came by; a second arrival of the same event finds it here.
  reference text not null unique,
  created_at timestamptz not null
);

create table {schema}.ledger (
  seq bigint generated always as identity primary key,
  account_id text not null,
  kind text not null check (kind in ('CREDIT', 'DEBIT', 'HOLD', 'EXTEND', 'SETTLE', 'VOID', 'EXPIRE')),
  request_id uuid,
  part smallint not null default 0 check ((kind = 'EXTEND') = (part > 0)),
  grant_id uuid,
  -- Double entry in one row: the account's side, then the gateway's own sides.
  amount bigint not null,
  held bigint not null default 0,
  revenue bigint not null default 0,
  funding bigint not null default 0,
  absorbed bigint not null default 0,
  balance_after bigint not null,
  detail jsonb not null default '{}',
  created_at timestamptz not null,
  constraint ledger_balanced check (amount + held + revenue + funding + absorbed = 0),
  constraint ledger_keyed check ((kind in ('CREDIT', 'DEBIT')) = (request_id is null)),
  constraint ledger_granted check ((kind = 'CREDIT') = (grant_id is not null))
);

create index ledger_account on {schema}.ledger (account_id, seq);
create unique index ledger_grant on {schema}.ledger (grant_id) where grant_id is not null;
create unique index ledger_request on {schema}.ledger (request_id, kind, part) where request_id is not null;
-- A request ends once: settled, voided or expired.
create unique index ledger_end on {schema}.ledger (request_id) where kind in ('SETTLE', 'VOID', 'EXPIRE');

create function {schema}.refuse_ledger_change() returns trigger language plpgsql as $body$
begin
  raise exception 'rows of %.% are immutable', tg_table_schema, tg_table_name;
end
$body$;

create trigger immutable before update or delete or truncate on {schema}.ledger
  for each statement execute function {schema}.refuse_ledger_change();
create trigger immutable before update or delete or truncate on {schema}.grants
  for each statement execute function {schema}.refuse_ledger_change();

-- The sums of all ledger rows by side; together they are zero.
create table {schema}.totals (
  only_row boolean primary key default true check (only_row),
  available bigint not null default 0,
  held bigint not null default 0,
  revenue bigint not null default 0,
  funding bigint not null default 0,
  absorbed bigint not null default 0
);
insert into {schema}.totals default values;

-- One row for each request that was charged, at 0 too.
create table {schema}.usage (
  request_id uuid primary key,
  account_id text not null,
  key_id text not null,
  model text not null,
  provider text,
  target_model text,
  classes jsonb not null,
  -- The prompt as it was estimated for the hold; against `classes` it shows how good the estimate is.
  estimated_input bigint not null,
  held bigint not null,
  cost bigint not null check (cost >= 0),
  estimated boolean not null,
  terminal boolean not null,
  finish text,
  upstream_id text,
  price_version text not null,
  ratio text not null,
  created_at timestamptz not null
);
create index usage_account on {schema}.usage (account_id, created_at);

-- One row for each attempt that was handed to an upstream, failed ones too: it reconciles with the vendor's invoice.
create table {schema}.attempts (
  request_id uuid not null,
  number smallint not null,
  account_id text not null,
  provider text not null,
  model text not null,
  credential text not null,
  protocol text not null,
  result text not null,
  status integer,
  duration_ms bigint,
  error text,
  started_at timestamptz not null,
  primary key (request_id, number)
);

-- How far each journal has been applied, and who may go on.
create table {schema}.journal_cursor (
  journal text primary key,
  owner text not null,
  applied bigint not null default 0,
  updated_at timestamptz not null
);
