-- Providers and keys that an operator has taken out of use. A key is named by a digest of it, empty where it is the whole
-- provider: its number changes with the list of keys.
create table {schema}.disabled_upstreams (
  provider text not null,
  key_digest text not null,
  disabled_at timestamptz not null,
  primary key (provider, key_digest)
);

-- Keys of vendors that operators have given: sealed under a key of the gateway's own, which is not in the database. The
-- newest version of a name is its secret; older ones are used beside it until their time, or until the newest has worked.
create table {schema}.vendor_secrets (
  name text not null,
  version bigint not null,
  key_id text not null,
  sealed text not null,
  valid_until timestamptz,
  until_worked boolean not null,
  set_at timestamptz not null,
  set_by text not null,
  primary key (name, version)
);
