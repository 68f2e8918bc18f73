-- People who sign in to the console, how they prove who they are, and what they did. The first six tables are kept by better-auth.

create table {schema}.console_people (
  id text primary key,
  name text not null,
  email text not null unique,
  email_verified boolean not null default false,
  image text,
  two_factor_enabled boolean not null default false,
  role text not null default 'client' check (role in ('client', 'auditor', 'operator')),
  blocked boolean not null default false,
  -- The gateway account, made when it is first needed.
  account_id text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- What a provider's claims gave the person last, so that only a change of them changes anything.
  claimed_role text,
  claimed_plan text
);

create index console_people_created_at on {schema}.console_people (created_at, id);

create table {schema}.console_sessions (
  id text primary key,
  -- SHA-256 of what is in the cookie.
  token text not null unique,
  user_id text not null references {schema}.console_people (id) on delete cascade,
  expires_at timestamptz not null,
  ip_address text,
  user_agent text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- By which it began.
  provider_id text
);

create index console_sessions_user_id on {schema}.console_sessions (user_id);
create index console_sessions_expires_at on {schema}.console_sessions (expires_at);

-- A password, or an identity at a provider.
create table {schema}.console_identities (
  id text primary key,
  account_id text not null,
  provider_id text not null,
  user_id text not null references {schema}.console_people (id) on delete cascade,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamptz,
  refresh_token_expires_at timestamptz,
  scope text,
  password text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (provider_id, account_id)
);

create index console_identities_user_id on {schema}.console_identities (user_id);

create table {schema}.console_verifications (
  id text primary key,
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create index console_verifications_identifier on {schema}.console_verifications (identifier);
create index console_verifications_expires_at on {schema}.console_verifications (expires_at);

create table {schema}.console_two_factors (
  id text primary key,
  secret text not null,
  backup_codes text not null,
  user_id text not null references {schema}.console_people (id) on delete cascade,
  verified boolean not null default true,
  failed_verification_count integer not null default 0,
  locked_until timestamptz
);

create index console_two_factors_user_id on {schema}.console_two_factors (user_id);

create table {schema}.console_passkeys (
  id text primary key,
  name text,
  public_key text not null,
  user_id text not null references {schema}.console_people (id) on delete cascade,
  credential_id text not null unique,
  counter integer not null,
  device_type text not null,
  backed_up boolean not null,
  transports text,
  created_at timestamptz,
  aaguid text
);

create index console_passkeys_user_id on {schema}.console_passkeys (user_id);

create table {schema}.console_settings (
  name text primary key,
  value text not null
);

-- Links that let somebody in once: `first_operator` or `invitation`. The link's secret is kept as its SHA-256.
create table {schema}.console_links (
  hash text primary key,
  kind text not null,
  email text,
  expires_at timestamptz not null,
  used_at timestamptz,
  created_at timestamptz not null
);

create table {schema}.console_tokens (
  id text primary key,
  name text not null,
  prefix text not null,
  hash text not null unique,
  created_by text not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);

create table {schema}.console_audit (
  id text primary key,
  at timestamptz not null,
  actor text not null,
  role text not null,
  action text not null,
  subject text not null,
  reason text,
  address text not null,
  result text not null
);

create index console_audit_at on {schema}.console_audit (at, id);

-- The log is added to; the one thing that may change of a row is what came of it, once.
create function {schema}.console_audit_keep() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.result = 'begun'
    and (new.id, new.at, new.actor, new.role, new.action, new.subject, new.address)
      is not distinct from (old.id, old.at, old.actor, old.role, old.action, old.subject, old.address)
    and new.reason is not distinct from old.reason
  then
    return new;
  end if;
  raise exception 'the audit log is not changed';
end
$$;

create trigger console_audit_keep before update or delete on {schema}.console_audit
  for each row execute function {schema}.console_audit_keep();

-- Applied configurations: what ran, since when, and who made it so. Texts are sealed, since a file may have secrets written out.

create table {schema}.console_config_texts (
  -- SHA-256 of the text.
  digest text primary key,
  sealed text not null,
  bytes integer not null
);

create table {schema}.console_config_versions (
  version integer primary key,
  at timestamptz not null,
  -- SHA-256 over paths and texts.
  digest text not null,
  source text not null,
  actor text,
  reason text,
  audit_id text,
  node text not null,
  -- Path, digest and bytes of each file, as JSON.
  files text not null
);

-- The version that each node applied last.
create table {schema}.console_config_nodes (
  node text primary key,
  version integer not null,
  at timestamptz not null
);
