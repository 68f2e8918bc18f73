-- Sums of requests are kept, by quarters of an hour and by UTC days, in several groupings (`part`): pages read these. They stay
-- when the rows are deleted. Part 0 has all dimensions, by quarters, and is written with the requests. The others are made of
-- it, up to `folded`.
create table {schema}.request_sums_groups (
  -- A hash of the others.
  id bigint primary key,
  account_id uuid not null,
  key_id uuid not null,
  model text not null,
  provider text not null,
  operation text not null,
  result text not null
);
create index request_sums_groups_account on {schema}.request_sums_groups (account_id);

create table {schema}.request_sums (
  group_id bigint not null,
  at timestamptz not null,
  requests bigint not null,
  part smallint not null,
  -- Histograms: twelve decimal digits for each cell of 5 %, from 0.1 ms on.
  first_byte numeric,
  total numeric,
  primary key (part, group_id, at)
) with (fillfactor = 90);
create index request_sums_at on {schema}.request_sums (part, at) where part > 0;
-- Its rows come in the order of their times, so an index of ranges will do: it costs the calls nothing.
create index request_sums_fine on {schema}.request_sums using brin (at) with (pages_per_range = 8, autosummarize = on) where part = 0;

create table {schema}.request_sums_state (
  one boolean primary key default true check (one),
  folded timestamptz not null default '-infinity',
  -- Parts that are only worth it where there is much traffic begin with this day.
  rich_from timestamptz not null default 'infinity',
  -- Earlier rows were deleted, so that their sums cannot be made again.
  rows_from timestamptz not null default '-infinity'
);
insert into {schema}.request_sums_state default values;

with given as (
  select coalesce(account_id, '00000000-0000-0000-0000-000000000000') as account_id, coalesce(key_id, '00000000-0000-0000-0000-000000000000') as key_id, coalesce(model, '') as model,
    coalesce(provider, '') as provider, operation,
    case when outcome = 'complete' and status < 400 then 'ok' when outcome = 'complete' and status between 400 and 499 then 'client_error'
      when outcome = 'client_left' then 'left' else 'upstream_error' end as result,
    received_at, first_byte_ms, total_ms
  from {schema}.requests
), found as materialized (
  select hashtextextended(concat_ws(E'\x1f', account_id, key_id, model, provider, operation, result), 0) as id, account_id, key_id, model,
    provider, operation, result, date_bin('15 minutes', received_at, '2000-01-01 00:00:00Z') as at, count(*) as requests,
    sum(('1e' || 12 * least(greatest(floor(ln(greatest(first_byte_ms::float8, 0.1) / 0.1) / 0.04879016416943205), 0), 371)::int)::numeric)
      filter (where first_byte_ms is not null) as first_byte,
    sum(('1e' || 12 * least(greatest(floor(ln(greatest(total_ms::float8, 0.1) / 0.1) / 0.04879016416943205), 0), 371)::int)::numeric)
      filter (where total_ms is not null) as total
  from given group by 1, 2, 3, 4, 5, 6, 7, 8
), groups as (
  insert into {schema}.request_sums_groups select distinct id, account_id, key_id, model, provider, operation, result from found
)
insert into {schema}.request_sums (group_id, at, part, requests, first_byte, total)
  select id, at, 0, requests, first_byte, total from found order by at;
