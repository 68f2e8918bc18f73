-- Providers and keys that an operator has taken out of use; the credential is empty where it is the whole provider.
create table {schema}.disabled_upstreams (
  provider text not null,
  credential text not null,
  disabled_at timestamptz not null,
  primary key (provider, credential)
);
