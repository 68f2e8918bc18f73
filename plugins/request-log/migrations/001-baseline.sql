-- What happened to each request, for people to look at. Money has rows of its own; nothing is charged by these. Requests that billing
-- has as calls are rows of `calls`; the others are here.
create table {schema}.requests (
  id uuid not null,
  received_at timestamptz not null,
  operation text not null,
  protocol text,
  -- Zeros: none.
  account_id uuid not null,
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
  upstream_id text,
  -- What a translation left out, and what was decided on the way: [{"at": ms, "by": plugin, "text": …, "operator": true}].
  dropped text[],
  story jsonb,
  primary key (account_id, id)
);
-- Ids are in the order of arrival: requests of all accounts, one of them, those of a span.
create index requests_id on {schema}.requests (id);

-- What clients sent and were told, masked, where an operator has asked for it. Each row says when it is to go.
create table {schema}.request_bodies (
  request_id uuid not null,
  -- Zeros: none.
  account_id uuid not null,
  received_at timestamptz not null,
  expires_at timestamptz not null,
  request text,
  request_type text,
  request_bytes bigint,
  request_left_out bigint,
  answer text,
  answer_type text,
  answer_bytes bigint,
  answer_left_out bigint,
  primary key (request_id, account_id)
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

-- Sums of requests are kept, by quarters of an hour, hours and UTC days, in several groupings (`part`): pages read these. They stay
-- when the rows are deleted. Part 0 has all dimensions, by quarters, and is written with the requests. The others are made of
-- it, up to `folded`.
create table {schema}.request_sums_groups (
  -- A hash of the others.
  id bigint not null,
  -- Zeros in parts that do not tell accounts apart, and of requests without an account.
  account_id uuid not null,
  key_id uuid not null,
  model text not null,
  provider text not null,
  operation text not null,
  result text not null,
  -- Of a failure.
  cause text not null default '',
  primary key (account_id, id)
);
-- Pages ask for the groups of listed keys, too.
create index request_sums_groups_key on {schema}.request_sums_groups (key_id);

create table {schema}.request_sums (
  account_id uuid not null,
  group_id bigint not null,
  at timestamptz not null,
  requests bigint not null,
  part smallint not null,
  -- Histograms: twelve decimal digits for each cell of 5 %, from 0.1 ms on.
  first_byte numeric,
  total numeric,
  -- Sums are read by part and time, of all accounts or of the groups of one.
  primary key (part, group_id, at, account_id)
) with (fillfactor = 90);
create index request_sums_at on {schema}.request_sums (part, at) where part > 0;
-- Its rows come in the order of their times, so an index of ranges will do: it costs the calls nothing. It is read as a whole each time, so
-- its ranges are long; a quarter of an hour has several.
create index request_sums_fine on {schema}.request_sums using brin (at) with (pages_per_range = 32, autosummarize = on) where part = 0;

create table {schema}.request_sums_state (
  one boolean primary key default true check (one),
  folded timestamptz not null default '-infinity',
  -- Parts that are only worth it where there is much traffic begin with this day.
  rich_from timestamptz not null default 'infinity',
  -- Earlier rows were deleted, so that their sums cannot be made again.
  rows_from timestamptz not null default '-infinity'
);
insert into {schema}.request_sums_state default values;
