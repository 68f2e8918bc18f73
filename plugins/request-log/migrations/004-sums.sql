-- Sums of requests are kept, by quarters of an hour and by UTC days, in several groupings (`part`): pages read these. They stay
-- when the rows are deleted. Part 0 has all dimensions, by quarters, and is written with the requests. The others are made of
-- it, up to `folded`.
create table {schema}.request_sums (
  part smallint not null,
  at timestamptz not null,
  account_id uuid not null,
  key_id uuid not null,
  model text not null,
  provider text not null,
  operation text not null,
  result text not null,
  requests bigint not null,
  -- Histograms: twelve decimal digits for each cell of 5 %, from 0.1 ms on.
  first_byte numeric,
  total numeric,
  primary key (part, account_id, at, key_id, model, provider, operation, result)
) with (fillfactor = 80);
create index request_sums_at on {schema}.request_sums (part, at) where part in (0, 4, 8, 9);
create index request_sums_model on {schema}.request_sums (part, model, at) where part in (3, 7);

create table {schema}.request_sums_state (
  one boolean primary key default true check (one),
  folded timestamptz not null default '-infinity',
  -- Earlier rows were deleted, so that their sums cannot be made again.
  rows_from timestamptz not null default '-infinity'
);
insert into {schema}.request_sums_state default values;

insert into {schema}.request_sums
  select 0, date_bin('15 minutes', received_at, '2000-01-01 00:00:00Z'), coalesce(account_id, '00000000-0000-0000-0000-000000000000'),
    coalesce(key_id, '00000000-0000-0000-0000-000000000000'), coalesce(model, ''), coalesce(provider, ''), operation,
    case when outcome = 'complete' and status < 400 then 'ok' when outcome = 'complete' and status between 400 and 499 then 'client_error'
      when outcome = 'client_left' then 'left' else 'upstream_error' end,
    count(*),
    sum(('1e' || 12 * least(greatest(floor(ln(greatest(first_byte_ms::float8, 0.1) / 0.1) / 0.04879016416943205), 0), 371)::int)::numeric)
      filter (where first_byte_ms is not null),
    sum(('1e' || 12 * least(greatest(floor(ln(greatest(total_ms::float8, 0.1) / 0.1) / 0.04879016416943205), 0), 371)::int)::numeric)
  from {schema}.requests group by 1, 2, 3, 4, 5, 6, 7, 8;
