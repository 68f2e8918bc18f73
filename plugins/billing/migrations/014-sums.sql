-- Sums of calls are kept, by quarters of an hour and by UTC days, in several groupings (`part`): pages and reports read these.
-- Part 0 has all dimensions, by quarters, and is written with the calls. The others are made of it, up to `folded`.
create table {schema}.call_sums (
  part smallint not null,
  at timestamptz not null,
  account_id text not null,
  key_id text not null,
  model text not null,
  provider text not null,
  charged bigint,
  cost bigint,
  own_cost bigint,
  own_unknown bigint,
  absorbed bigint,
  "input" bigint,
  "cache_read" bigint,
  "cache_write_5m" bigint,
  "cache_write_1h" bigint,
  "input_audio" bigint,
  "input_image" bigint,
  "output" bigint,
  "reasoning" bigint,
  "output_audio" bigint,
  "output_image" bigint,
  "image" bigint,
  "second" bigint,
  "request" bigint,
  "call" bigint,
  "web_search" bigint,
  "web_fetch" bigint,
  "code_execution" bigint,
  "file_search" bigint,
  primary key (part, account_id, at, key_id, model, provider)
) with (fillfactor = 80);
create index call_sums_at on {schema}.call_sums (part, at) where part in (0, 4, 8, 9);
create index call_sums_model on {schema}.call_sums (part, model, at) where part in (3, 7);

create table {schema}.call_sums_state (
  one boolean primary key default true check (one),
  folded timestamptz not null default '-infinity',
  -- Earlier rows were deleted, so that their sums cannot be made again.
  rows_from timestamptz not null default '-infinity'
);
insert into {schema}.call_sums_state default values;

insert into {schema}.call_sums
  select 0, date_bin('15 minutes', created_at, '2000-01-01 00:00:00Z'), account_id, coalesce(key_id, ''), model, coalesce(provider, ''),
    count(*) filter (where settled), sum(cost), sum(own_cost) filter (where settled),
    count(*) filter (where settled and own_cost is null), sum(absorbed)
    , sum((classes->>'input')::bigint) filter (where settled)
    , sum((classes->>'cache_read')::bigint) filter (where settled)
    , sum((classes->>'cache_write_5m')::bigint) filter (where settled)
    , sum((classes->>'cache_write_1h')::bigint) filter (where settled)
    , sum((classes->>'input_audio')::bigint) filter (where settled)
    , sum((classes->>'input_image')::bigint) filter (where settled)
    , sum((classes->>'output')::bigint) filter (where settled)
    , sum((classes->>'reasoning')::bigint) filter (where settled)
    , sum((classes->>'output_audio')::bigint) filter (where settled)
    , sum((classes->>'output_image')::bigint) filter (where settled)
    , sum((classes->>'image')::bigint) filter (where settled)
    , sum((classes->>'second')::bigint) filter (where settled)
    , sum((classes->>'request')::bigint) filter (where settled)
    , sum((classes->>'call')::bigint) filter (where settled)
    , sum((classes->>'web_search')::bigint) filter (where settled)
    , sum((classes->>'web_fetch')::bigint) filter (where settled)
    , sum((classes->>'code_execution')::bigint) filter (where settled)
    , sum((classes->>'file_search')::bigint) filter (where settled)
  from {schema}.calls group by 1, 2, 3, 4, 5, 6;

-- Movements outside of calls by their times: they are few.
create index ledger_entries_at on {schema}.ledger (created_at) where request_id is null;
