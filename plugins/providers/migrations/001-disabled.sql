-- Providers and keys that an operator has taken out of use. A key is named by a digest of it, empty where it is the whole
-- provider: its number changes with the list of keys.
create table {schema}.disabled_upstreams (
  provider text not null,
  key_digest text not null,
  disabled_at timestamptz not null,
  primary key (provider, key_digest)
);
