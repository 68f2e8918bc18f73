-- Budgets of single accounts, beside those of the settings.
create table if not exists {schema}.budgets (
  account_id text not null,
  id uuid not null,
  -- operator: set for the account. owner: set by its own people, beside what operators have set.
  authority text not null check (authority in ('operator', 'owner')),
  -- Which calls count and for how long, as JSON, and the digest of that: it never changes.
  counts json not null,
  digest text not null,
  amount bigint not null check (amount >= 0),
  -- What follows when it is passed, and when notices are sent.
  terms json not null default '{}',
  created_at timestamptz not null default clock_timestamp(),
  changed_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  primary key (account_id, id),
  unique (account_id, authority, digest)
);
create index if not exists budgets_changed on {schema}.budgets (changed_at);

-- What a scope may spend beyond its budget in one period. Rows never change.
create table if not exists {schema}.budget_additions (
  account_id text not null,
  id uuid not null,
  scope text not null,
  -- When the period begins and ends; without an end: it does not.
  from_at timestamptz not null,
  until_at timestamptz,
  amount bigint not null check (amount > 0),
  reason text not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (account_id, id)
);
create index if not exists budget_additions_created on {schema}.budget_additions (created_at);
