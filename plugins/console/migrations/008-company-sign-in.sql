-- Mail domains that accounts say are theirs, with the text that proves it in DNS.
create table if not exists {schema}.console_company_domains (
  account_id text not null,
  -- In small letters.
  domain text not null,
  token text not null,
  created_at timestamptz not null,
  verified_at timestamptz,
  primary key (account_id, domain)
);
create unique index if not exists console_company_domains_verified on {schema}.console_company_domains (domain) where verified_at is not null;
-- The provider by which people of an account's domains sign in to it.
create table if not exists {schema}.console_company_providers (
  id text primary key,
  account_id text not null unique,
  name text not null,
  -- JSON without secrets.
  settings text not null,
  -- Encrypted with the console's secret.
  sealed text not null,
  updated_at timestamptz not null
);
-- What the claims of a provider have given its people in an account.
create table if not exists {schema}.console_company_people (
  id uuid primary key default gen_random_uuid(),
  account_id text not null,
  person_id text not null,
  claimed_role text,
  project text,
  unique (account_id, person_id)
);
-- The account that a session is for alone, since it began at that account's provider.
alter table {schema}.console_sessions add column if not exists company_account_id text;
