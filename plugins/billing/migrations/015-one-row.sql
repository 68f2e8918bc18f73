-- A call and its request are one row: the request log adds what it knows, and removes it after its retention. Money stays as it is.
alter table {schema}.calls
  add column bytes_out bigint,
  add column bytes_in integer,
  add column first_byte_ms real,
  add column total_ms real,
  -- Null: the request's facts are in the table `requests`, lost in a crash, or removed.
  add column status smallint,
  -- Attempts, with those that were not sent.
  add column tries smallint,
  add column streamed boolean,
  add column operation text,
  add column protocol text,
  add column outcome text,
  -- Only what differs from `model`, `provider` and `target_model`: the model as it was asked for, and the last attempt if it was not sent.
  add column asked_model text,
  add column last_provider text,
  add column last_model text,
  add column error_kind text,
  add column error_code text,
  add column dropped text[],
  -- The timeline, as JSON.
  add column story text;

create or replace trigger immutable before update of id, account_id, key_id, model, plan, settled, reason, provider, target_model, classes,
    estimated_input, held, cost, own_cost, absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio,
    attempts, held_at, created_at or delete or truncate on {schema}.calls
  for each statement execute function {schema}.refuse_ledger_change();

-- Ids are in the order of arrival.
drop index {schema}.calls_account, {schema}.calls_key;
create index calls_account on {schema}.calls (account_id, id);

-- What a key has spent is in the sums.
create index call_sums_groups_key on {schema}.call_sums_groups (key_id);

create view {schema}.call_requests as
  select id, to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint::float8 / 1000) as received_at,
    operation, protocol, account_id, key_id, coalesce(asked_model, model) as model, coalesce(last_provider, provider) as provider,
    coalesce(last_model, target_model) as upstream_model, streamed, status, outcome, error_kind, error_code, tries as attempts,
    first_byte_ms, total_ms, bytes_in, bytes_out, classes as usage, case when settled then estimated end as usage_estimated, finish,
    upstream_id, dropped, story::json as story
  from {schema}.calls where status is not null;

-- All calls that arrived before this have lost their facts.
create table {schema}.facts_forgotten (
  one boolean primary key default true check (one),
  before timestamptz not null
);
