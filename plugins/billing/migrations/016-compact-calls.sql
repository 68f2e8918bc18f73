-- A row of `calls` has what differs from call to call; what repeats is left out, or stands once for a batch.

-- Timelines of one batch together: they are nearly alike, so together they compress to a small part.
create table {schema}.call_timelines (
  id bigint generated always as identity primary key,
  -- The latest of its requests to arrive: it is removed when that is.
  newest uuid not null,
  stories text[] not null
);
alter table {schema}.calls
  add column timelines bigint,
  -- From 1.
  add column timeline integer;
comment on column {schema}.calls.story is 'The timeline as JSON; where few calls came together. Otherwise it is number `timeline` of the row `timelines` of call_timelines';
comment on column {schema}.calls.attempts is 'Those that were sent: objects, or arrays by place; see attempts_of';

-- Rows come nearly in the order of their times, so an index of ranges will do: it costs the calls nothing.
drop index {schema}.calls_at;
create index calls_at on {schema}.calls using brin (created_at) with (pages_per_range = 16, autosummarize = on);

-- The attempts of a call to this provider and model, as objects. As arrays: number, provider and model (0: those given), credential, protocol, start,
-- result, status, duration, bearer, amount absorbed, error, usage, whether that is estimated; what is absent at the end is left out.
create function {schema}.attempts_of(attempts json, provider text, model text) returns json language sql stable as $body$
  select coalesce(json_agg(case json_typeof(attempt) when 'object' then attempt else json_strip_nulls(json_build_object(
      'number', attempt->0,
      'provider', case json_typeof(attempt->1) when 'number' then attempts_of.provider else attempt->>1 end,
      'model', case json_typeof(attempt->2) when 'number' then attempts_of.model else attempt->>2 end,
      'credential', attempt->3,
      'protocol', attempt->4,
      'startedAt', attempt->5,
      'result', (array['running', 'not_sent', 'refused', 'unknown', 'answered'])[(attempt->>6)::int + 1],
      'status', attempt->7,
      'durationMs', attempt->8,
      'bearer', (array['client', 'operator'])[(attempt->>9)::int],
      'absorbed', attempt->10,
      'error', attempt->11,
      'usage', attempt->12,
      'estimated', attempt->13)) end order by place), '[]')
  from json_array_elements(attempts_of.attempts) with ordinality as sent (attempt, place)
$body$;

create or replace view {schema}.call_requests as
  select id, to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint::float8 / 1000) as received_at,
    operation, protocol, account_id, key_id, coalesce(asked_model, model) as model, coalesce(last_provider, provider) as provider,
    coalesce(last_model, target_model) as upstream_model, streamed, status, outcome, error_kind, error_code, tries as attempts,
    first_byte_ms, total_ms, bytes_in, bytes_out, classes as usage, case when settled then estimated end as usage_estimated, finish,
    upstream_id, dropped,
    coalesce(story, (select stories[calls.timeline] from {schema}.call_timelines as kept where kept.id = calls.timelines))::json as story
  from {schema}.calls where status is not null;
