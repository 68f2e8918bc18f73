-- The time zones of accounts that have one of their own: periods of budgets and caps, and months of statements, begin there.
create table if not exists {schema}.account_zones (
  account_id text primary key,
  -- By its IANA name; null: not any more.
  zone text,
  changed_at timestamptz not null default clock_timestamp()
);
create index if not exists account_zones_changed on {schema}.account_zones (changed_at);
