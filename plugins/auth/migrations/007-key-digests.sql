-- What keys are found by beside their hash while `auth.secret` changes. `secret`: a mark of the secret that made the digest.
create table {schema}.key_digests (
  digest text primary key,
  key_id uuid not null references {schema}.keys (id) on delete cascade,
  secret text not null
);

create index key_digests_key on {schema}.key_digests (key_id);
