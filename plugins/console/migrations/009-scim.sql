-- By which a company's directory says who is in an account: one for each account.
create table if not exists {schema}.console_scim_tokens (
  account_id text primary key,
  -- SHA-256 of the token.
  hash text not null unique,
  created_at timestamptz not null,
  last_used_at timestamptz
);
-- People as the directory has them. One that it has deleted stays, so that a sign-in does not bring them back.
create table if not exists {schema}.console_scim_users (
  id text primary key,
  account_id text not null,
  person_id text not null,
  -- In small letters.
  user_name text not null,
  external_id text,
  active boolean not null,
  -- JSON of what else the directory says.
  attributes text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  unique (account_id, user_name),
  unique (account_id, person_id)
);
create table if not exists {schema}.console_scim_groups (
  id text primary key,
  account_id text not null,
  display_name text not null,
  external_id text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (account_id, display_name)
);
create table if not exists {schema}.console_scim_group_members (
  group_id text not null references {schema}.console_scim_groups (id) on delete cascade,
  user_id text not null references {schema}.console_scim_users (id) on delete cascade,
  primary key (group_id, user_id)
);
create index if not exists console_scim_group_members_user on {schema}.console_scim_group_members (user_id);
