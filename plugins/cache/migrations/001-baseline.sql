-- Answers that are given again, where they are kept in the database; and what the cache has saved.
create table {schema}.cache_entries (
  account_id text not null,
  -- Digest of the request.
  key text not null,
  -- JSON, as text: headers may hold what a JSON column refuses.
  head text not null,
  body bytea not null,
  bytes bigint not null,
  stored_at timestamptz not null,
  expires_at timestamptz not null,
  -- Digest of all of the request but its question, and the question's vector; null: it is compared with no other.
  group_key text,
  vector text,
  primary key (account_id, key)
);
create index cache_entries_expiry on {schema}.cache_entries (expires_at);
create index cache_entries_age on {schema}.cache_entries (stored_at);
create index cache_entries_groups on {schema}.cache_entries (account_id, group_key, stored_at) where group_key is not null;

-- Bytes by account, and of all under `*`; the last row is also what writers wait for.
create table {schema}.cache_bytes (
  account_id text primary key,
  bytes bigint not null
);

-- Answers that a process makes now.
create table {schema}.cache_flights (
  account_id text not null,
  key text not null,
  owner text not null,
  held_until timestamptz not null,
  primary key (account_id, key)
);

-- Hits and misses of a day (UTC); `saved` in nano-USD: what hits would have cost beyond their price.
create table {schema}.cache_sums (
  account_id text not null,
  day date not null,
  model text not null,
  operation text not null,
  hits bigint not null,
  similar_hits bigint not null,
  misses bigint not null,
  saved numeric not null,
  primary key (account_id, day, model, operation)
);
create index cache_sums_days on {schema}.cache_sums (day);
