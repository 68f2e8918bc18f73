-- Calls as requests have the person and the project that they are for: the request log sums them up by these.
create or replace view {schema}.call_requests as
  select id, to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint::float8 / 1000) as received_at,
    operation, protocol, account_id, key_id, coalesce(requested_model, model) as model, coalesce(last_provider, provider) as provider,
    coalesce(last_model, target_model) as upstream_model, streamed, status, outcome, error_kind, error_code, tries as attempts,
    first_byte_ms, total_ms, bytes_in, bytes_out, classes as usage, case when settled then estimated end as usage_estimated, finish,
    upstream_id, dropped,
    coalesce(story, (select stories[calls.timeline] from {schema}.call_timelines as kept
      where kept.account_id = calls.account_id and kept.id = calls.timelines))::json as story,
    person, project
  from {schema}.calls where status is not null;
-- Pages ask for the groups of a project, of all accounts too.
create index if not exists call_sums_groups_project on {schema}.call_sums_groups (project);
