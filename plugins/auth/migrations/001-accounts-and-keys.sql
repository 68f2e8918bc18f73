create table {schema}.accounts (
  id uuid primary key default gen_random_uuid(),
  name text not null unique,
  plan text not null,
  disabled boolean not null default false,
  created_at timestamptz not null
);

create table {schema}.keys (
  id uuid primary key default gen_random_uuid(),
  account_id uuid not null references {schema}.accounts (id),
  name text not null,
  prefix text not null,
  hash text not null unique,
  models text[],
  expires_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz not null,
  last_used_at timestamptz
);

create index keys_account_id on {schema}.keys (account_id);
create index keys_prefix on {schema}.keys (prefix);

create table {schema}.auth_settings (
  name text primary key,
  value text not null
);
