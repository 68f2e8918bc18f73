-- Calls that carried an Idempotency-Key: which run, and what was answered, for as long as their keys live.

create table {schema}.idempotent_calls (
  account_id text not null,
  -- SHA-256 of the key, and of path, query and body.
  key_hash text not null,
  fingerprint text not null,
  -- The exchange that runs it or ran it: the key of its rows in the ledger.
  request_id uuid not null,
  -- Whose process runs it, by the name of its data directory.
  owner text not null,
  -- running: a process works on it and renews its lease. answered: `told` and `body` are the answer.
  -- lost: it ran, but its answer could not be kept.
  state text not null check (state in ('running', 'answered', 'lost')),
  lease_until timestamptz not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- JSON, as text: headers and errors may hold what a JSON column refuses.
  told text,
  body bytea,
  primary key (account_id, key_hash),
  constraint answered_whole check ((state = 'answered') = (told is not null and body is not null))
);

create index idempotent_calls_expiry on {schema}.idempotent_calls (expires_at);
create index idempotent_calls_running on {schema}.idempotent_calls (owner) where state = 'running';
