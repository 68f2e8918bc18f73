-- People of an account, and what each may do in it. An account without rows is the one person's whom it was made for.
create table {schema}.members (
  id uuid primary key default gen_random_uuid(),
  account_id uuid not null references {schema}.accounts (id),
  person text not null,
  role text not null check (role in ('owner', 'admin', 'billing', 'developer', 'viewer')),
  -- The account was made for them: the row stays when they leave, so that they do not own it again.
  home boolean not null default false,
  left_at timestamptz,
  created_at timestamptz not null,
  unique (account_id, person)
);
create index members_person on {schema}.members (person);

create table {schema}.member_invitations (
  id uuid primary key default gen_random_uuid(),
  account_id uuid not null references {schema}.accounts (id),
  -- In small letters.
  email text not null,
  role text not null,
  -- SHA-256 of the link's secret.
  hash text not null unique,
  -- null: a key of the organization.
  invited_by text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  accepted_at timestamptz,
  accepted_by text
);
create index member_invitations_account on {schema}.member_invitations (account_id, created_at desc);
