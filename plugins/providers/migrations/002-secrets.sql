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
