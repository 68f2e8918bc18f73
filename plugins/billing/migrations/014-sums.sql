-- Sums of calls are kept, by quarters of an hour and by UTC days, in several groupings (`part`): pages and reports read these.
-- Part 0 has all dimensions, by quarters, and is written with the calls. The others are made of it, up to `folded`.
create table {schema}.call_sums_groups (
  -- A hash of the others.
  id bigint primary key,
  account_id text not null,
  key_id text not null,
  model text not null,
  provider text not null
);
create index call_sums_groups_account on {schema}.call_sums_groups (account_id);

create table {schema}.call_sums (
  group_id bigint not null,
  at timestamptz not null,
  part smallint not null,
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
  "search" bigint,
  "character" bigint,
  "audio" bigint,
  primary key (part, group_id, at)
) with (fillfactor = 90);
create index call_sums_at on {schema}.call_sums (part, at) where part > 0;
-- Its rows come in the order of their times, so an index of ranges will do: it costs the calls nothing.
create index call_sums_fine on {schema}.call_sums using brin (at) with (pages_per_range = 8, autosummarize = on) where part = 0;

create table {schema}.call_sums_state (
  one boolean primary key default true check (one),
  folded timestamptz not null default '-infinity',
  -- Parts that are only worth it where there is much traffic begin with this day.
  rich_from timestamptz not null default 'infinity',
  -- Earlier rows were deleted, so that their sums cannot be made again.
  rows_from timestamptz not null default '-infinity'
);
insert into {schema}.call_sums_state default values;

with found as materialized (
  select hashtextextended(concat_ws(E'\x1f', account_id, coalesce(key_id, ''), model, coalesce(provider, '')), 0) as id, account_id,
    coalesce(key_id, '') as key_id, model, coalesce(provider, '') as provider,
    date_bin('15 minutes', created_at, '2000-01-01 00:00:00Z') as at,
    nullif(count(*) filter (where settled), 0) as charged,
    sum(cost) as cost,
    sum(own_cost) filter (where settled) as own_cost,
    nullif(count(*) filter (where settled and own_cost is null), 0) as own_unknown,
    nullif(sum(absorbed), 0) as absorbed,
    sum((classes->>'input')::bigint) filter (where settled) as "input",
    sum((classes->>'cache_read')::bigint) filter (where settled) as "cache_read",
    sum((classes->>'cache_write_5m')::bigint) filter (where settled) as "cache_write_5m",
    sum((classes->>'cache_write_1h')::bigint) filter (where settled) as "cache_write_1h",
    sum((classes->>'input_audio')::bigint) filter (where settled) as "input_audio",
    sum((classes->>'input_image')::bigint) filter (where settled) as "input_image",
    sum((classes->>'output')::bigint) filter (where settled) as "output",
    sum((classes->>'reasoning')::bigint) filter (where settled) as "reasoning",
    sum((classes->>'output_audio')::bigint) filter (where settled) as "output_audio",
    sum((classes->>'output_image')::bigint) filter (where settled) as "output_image",
    sum((classes->>'image')::bigint) filter (where settled) as "image",
    sum((classes->>'second')::bigint) filter (where settled) as "second",
    sum((classes->>'request')::bigint) filter (where settled) as "request",
    sum((classes->>'call')::bigint) filter (where settled) as "call",
    sum((classes->>'web_search')::bigint) filter (where settled) as "web_search",
    sum((classes->>'web_fetch')::bigint) filter (where settled) as "web_fetch",
    sum((classes->>'code_execution')::bigint) filter (where settled) as "code_execution",
    sum((classes->>'file_search')::bigint) filter (where settled) as "file_search",
    sum((classes->>'search')::bigint) filter (where settled) as "search",
    sum((classes->>'character')::bigint) filter (where settled) as "character",
    sum((classes->>'audio')::bigint) filter (where settled) as "audio"
  from {schema}.calls group by 1, 2, 3, 4, 5, 6
), groups as (
  insert into {schema}.call_sums_groups select distinct id, account_id, key_id, model, provider from found
)
insert into {schema}.call_sums (group_id, at, part, charged, cost, own_cost, own_unknown, absorbed, "input", "cache_read", "cache_write_5m", "cache_write_1h", "input_audio", "input_image", "output", "reasoning", "output_audio", "output_image", "image", "second", "request", "call", "web_search", "web_fetch", "code_execution", "file_search", "search", "character", "audio")
  select id, at, 0, charged, cost, own_cost, own_unknown, absorbed, "input", "cache_read", "cache_write_5m", "cache_write_1h", "input_audio", "input_image", "output", "reasoning", "output_audio", "output_image", "image", "second", "request", "call", "web_search", "web_fetch", "code_execution", "file_search", "search", "character", "audio" from found order by at;

-- Movements outside of calls by their times: they are few.
create index ledger_entries_at on {schema}.ledger (created_at) where request_id is null;
