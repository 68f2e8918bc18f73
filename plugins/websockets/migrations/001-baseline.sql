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

-- Short-lived tokens of live sessions, by the digest of their text.
create table {schema}.live_tokens (
  digest text primary key,
  key_id text not null,
  -- Settings of the session, and which of its fields they replace; null: none.
  setup text,
  field_mask text,
  -- How many sessions it may open, and how many it has opened; 0: any number.
  uses integer not null,
  used integer not null default 0,
  -- No session begins after the first, no message is taken after the second.
  new_session_expires_at timestamptz not null,
  expires_at timestamptz not null
);
create index live_tokens_expiry on {schema}.live_tokens (expires_at);
create index live_tokens_key on {schema}.live_tokens (key_id);
