-- Short-lived keys of realtime sessions, by the digest of their text.
create table {schema}.realtime_secrets (
  digest text primary key,
  key_id text not null,
  model text not null,
  -- Settings of the session; null: none.
  session text,
  expires_at timestamptz not null
);
create index realtime_secrets_expiry on {schema}.realtime_secrets (expires_at);
create index realtime_secrets_key on {schema}.realtime_secrets (key_id);
