-- Programs that asked for a key of a person and wait for the answer, for minutes. Both codes are kept as their SHA-256.

create table {schema}.console_key_requests (
  -- What the program keeps for itself.
  device_hash text primary key,
  -- What the person compares and enters.
  code_hash text not null unique,
  program text not null,
  machine text not null,
  address text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- Between two questions of the program; longer after one that came too soon.
  interval_ms integer not null,
  asked_at timestamptz,
  -- waiting, granted, denied, used
  state text not null,
  person_id text references {schema}.console_people (id) on delete cascade,
  -- Of the key, as JSON.
  terms text
);

create index console_key_requests_expires_at on {schema}.console_key_requests (expires_at);
create index console_key_requests_person_id on {schema}.console_key_requests (person_id);
