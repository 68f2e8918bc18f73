-- Calls keep the person and the project that they are for, whatever becomes of their keys, and are summed up by them.
-- The columns come first: they are null for all rows that there are.
alter table {schema}.calls add column person text, add column project text;
alter table {schema}.call_sums_groups add column person text not null default '', add column project text not null default '';

create or replace trigger immutable before update of id, account_id, key_id, model, plan, person, project, settled, reason, provider, target_model, classes,
    estimated_input, held, cost, own_cost, absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio,
    attempts, held_at, created_at, seq, balance_after, is_long or truncate on {schema}.calls
  for each statement execute function {schema}.refuse_ledger_change();

-- With the new columns in the lines of files: an earlier version that runs meanwhile leaves its archiving to this one.
create or replace function {schema}.refuse_unarchived_deletion() returns trigger language plpgsql as $body$
declare
  sealed {schema}.archives;
  sealed_count integer;
  found record;
begin
  if not exists (select from removed) then return null; end if;
  select count(*) into sealed_count from {schema}.archives as archives where archives.xmin = pg_current_xact_id()::xid;
  if sealed_count <> 1 then
    raise exception 'rows of %.% are immutable', tg_table_schema, tg_table_name;
  end if;
  select * into sealed from {schema}.archives as archives where archives.xmin = pg_current_xact_id()::xid;
  select count(*) as calls, sum(cost) as cost, min(account_id) as first_account, max(account_id) as last_account,
      (array_agg(id order by id))[1] as first_id, (array_agg(id order by id desc))[1] as last_id,
      bool_and(settled and cost > 0 and status is null and timelines is null) as may_go,
      encode(sha256(convert_to(sealed.header || E'\n' || string_agg(line || E'\n', '' order by id), 'UTF8')), 'hex') as digest
    into found
    from (select removed.id, removed.account_id, removed.settled, removed.cost, removed.status, removed.timelines, row_to_json(kept)::text as line
      from removed, lateral (select id, account_id, key_id, model, plan, person, project, settled, reason, provider, target_model, classes,
        held, cost, estimated_input, own_cost, absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio, attempts,
        to_char(held_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as held_at,
        to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as created_at) as kept) as lines;
  if (found.calls, found.cost, found.first_account, found.last_account, found.first_id, found.last_id, found.may_go, found.digest)
      is distinct from (sealed.calls, sealed.cost, sealed.account_id, sealed.account_id, sealed.first_id, sealed.last_id, true, sealed.digest) then
    raise exception 'these rows of %.% are not those of the file %', tg_table_schema, tg_table_name, sealed.object;
  end if;
  if exists (select account_id, seq, id, cost, balance_after, created_at from removed
      except select account_id, seq, id, cost, balance_after, created_at from {schema}.archived_charges) then
    raise exception 'charges of these rows of %.% are not among those of archived calls', tg_table_schema, tg_table_name;
  end if;
  return null;
end
$body$;
