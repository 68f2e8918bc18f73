-- Accounts and their keys.

create table {schema}.accounts (
  id uuid primary key default gen_random_uuid(),
  name text not null unique,
  plan text not null,
  disabled boolean not null default false,
  created_at timestamptz not null,
  -- When the account's plan ends and the default plan takes its place; null: it does not end.
  plan_ends_at timestamptz,
  -- The account's own price ratio, as an operator writes it (`0.9`); null: 1.
  multiplier text
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
  last_used_at timestamptz,
  -- What a key may do beyond its models: where it may be used from, how often, and what it may spend.
  addresses text[],
  -- {"rpm": 60, "rpd": …, "tpm": …, "concurrency": …}, beside the plan's.
  limits jsonb,
  -- nano-USD in each calendar period (UTC): day, week, month, ever. Both or neither.
  cap_amount bigint,
  cap_every text,
  -- A project is the keys that have its name here, to sum up what they spend.
  project text,
  -- How orders of images are answered where the request does not say it: wait = with the images; null = with the task.
  images text,
  -- What its calls are for: `team=search` is on each of them, the value of `env` is said by a request. null: none.
  tags text[]
);
create index keys_account_id on {schema}.keys (account_id);
create index keys_prefix on {schema}.keys (prefix);
-- Lists of keys, newest first.
create index keys_by_time on {schema}.keys (created_at desc, id desc);
create index keys_of_projects on {schema}.keys (account_id) where project is not null;

-- What keys are found by beside their hash while `auth.secret` changes. `secret`: a mark of the secret that made the digest.
create table {schema}.key_digests (
  digest text primary key,
  key_id uuid not null references {schema}.keys (id) on delete cascade,
  secret text not null
);
create index key_digests_key on {schema}.key_digests (key_id);

create table {schema}.auth_settings (
  name text primary key,
  value text not null
);
