-- What happened to each request, for people to look at. Money has rows of its own; nothing is charged by these.
create table {schema}.requests (
  id uuid primary key,
  received_at timestamptz not null,
  operation text not null,
  protocol text,
  account_id uuid,
  key_id uuid,
  model text,
  provider text,
  upstream_model text,
  streamed boolean not null,
  status smallint not null,
  outcome text not null,
  error_kind text,
  error_code text,
  attempts smallint not null,
  first_byte_ms real,
  total_ms real not null,
  bytes_in integer not null,
  bytes_out bigint not null,
  usage jsonb,
  usage_estimated boolean,
  finish text,
  upstream_id text
);
create index requests_by_account on {schema}.requests (account_id, received_at desc);
create index requests_by_time on {schema}.requests (received_at);
