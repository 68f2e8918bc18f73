-- Sums of failures are kept by cause too. Those whose rows are there are made again; the others have no cause.
alter table {schema}.request_sums_groups add column cause text not null default '';

do $body$
declare
  requests text := 'select account_id, key_id, model, provider, operation, outcome, status, error_kind, error_code, received_at, first_byte_ms,
    total_ms from {schema}.requests';
  begins timestamptz;
begin
  -- Calls of this version are rows of billing.
  if to_regclass('{schema}.call_requests') is not null then
    requests := requests || ' union all select account_id::uuid, key_id::uuid, model, provider, operation, outcome, status, error_kind,
      error_code, received_at, first_byte_ms, total_ms from {schema}.call_requests';
  end if;
  select date_bin('15 minutes', greatest(rows_from, '2000-01-01 00:00:00Z') + interval '899.999999 seconds', '2000-01-01 00:00:00Z')
    into begins from {schema}.request_sums_state;
  delete from {schema}.request_sums using {schema}.request_sums_groups as groups
    where part = 0 and at >= begins and groups.id = group_id and result in ('client_error', 'upstream_error');
  execute format($statement$
    with given as (
      select coalesce(account_id, '00000000-0000-0000-0000-000000000000') as account_id,
        coalesce(key_id, '00000000-0000-0000-0000-000000000000') as key_id, coalesce(model, '') as model,
        coalesce(provider, '') as provider, operation,
        case when outcome = 'complete' and status between 400 and 499 then 'client_error' else 'upstream_error' end as result,
        coalesce(error_code, error_kind, status::text) as cause, received_at, first_byte_ms, total_ms
      from (%s) as requests
      where outcome <> 'client_left' and (outcome = 'failed' or status >= 400) and received_at >= %L
    ), found as materialized (
      select hashtextextended(concat_ws(E'\x1f', account_id, key_id, model, provider, operation, result, nullif(cause, '')), 0) as id,
        account_id, key_id, model, provider, operation, result, cause,
        date_bin('15 minutes', received_at, '2000-01-01 00:00:00Z') as at, count(*) as requests,
        sum(('1e' || 12 * least(greatest(floor(ln(greatest(first_byte_ms::float8, 0.1) / 0.1) / 0.04879016416943205), 0), 371)::int)::numeric)
          filter (where first_byte_ms is not null) as first_byte,
        sum(('1e' || 12 * least(greatest(floor(ln(greatest(total_ms::float8, 0.1) / 0.1) / 0.04879016416943205), 0), 371)::int)::numeric)
          filter (where total_ms is not null) as total
      from given group by 1, 2, 3, 4, 5, 6, 7, 8, 9
    ), groups as (
      insert into {schema}.request_sums_groups (id, account_id, key_id, model, provider, operation, result, cause)
        select distinct id, account_id, key_id, model, provider, operation, result, cause from found on conflict do nothing
    )
    insert into {schema}.request_sums (group_id, at, part, requests, first_byte, total)
      select id, at, 0, requests, first_byte, total from found order by at
  $statement$, requests, begins);
end
$body$;

-- The next hour makes the other parts again, a few hours at a time; sums by account are kept by eight days too.
delete from {schema}.request_sums where part > 0;
update {schema}.request_sums_state set folded = '-infinity';
