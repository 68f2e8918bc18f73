-- Ids of files, containers and the like that vendors issued in answers: the account that got one may use it again.

create table {schema}.issued_ids (
  account_id text not null,
  id text not null,
  -- Who keeps what it names, and the key that reaches it.
  provider text not null,
  credential text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (account_id, id)
);

create index issued_ids_expiry on {schema}.issued_ids (expires_at);
