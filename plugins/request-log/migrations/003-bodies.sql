-- What clients sent and were told, masked, where an operator has asked for it. Each row says when it is to go.
create table {schema}.request_bodies (
  request_id uuid primary key,
  account_id uuid,
  received_at timestamptz not null,
  expires_at timestamptz not null,
  request text,
  request_type text,
  request_bytes bigint,
  request_left_out bigint,
  answer text,
  answer_type text,
  answer_bytes bigint,
  answer_left_out bigint
);
create index request_bodies_by_end on {schema}.request_bodies (expires_at);
create index request_bodies_by_account on {schema}.request_bodies (account_id);

-- Whose bodies are kept for a limited time.
create table {schema}.body_recordings (
  id uuid primary key,
  account_id uuid,
  key_id uuid,
  model text,
  errors_only boolean not null,
  started_at timestamptz not null,
  until timestamptz not null,
  started_by text not null
);
create index body_recordings_by_end on {schema}.body_recordings (until);
