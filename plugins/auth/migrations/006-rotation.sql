-- A key can get another secret: the one before finds it too until its end. An earlier version that serves beside this one refuses it at once.
alter table {schema}.keys add column rotated_at timestamptz;

-- What a replaced secret finds its key by: one row for each secret of the gateway that it was hashed with.
create table {schema}.replaced_secrets (
  digest text primary key,
  key_id uuid not null references {schema}.keys (id) on delete cascade,
  prefix text not null,
  ends_at timestamptz not null
);
create index replaced_secrets_key on {schema}.replaced_secrets (key_id);
