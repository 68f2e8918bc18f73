-- Charges of calls whose own cost is not known: the margin is that of the others.
alter table {schema}.call_sums add column uncosted bigint;
update {schema}.call_sums set uncosted = cost where part = 0 and own_unknown = charged and cost <> 0;
-- Some calls of these sums have an own cost, others have none.
update {schema}.call_sums as kept set uncosted = found.uncosted
  from (select hashtextextended(concat_ws(E'\x1f', account_id, coalesce(key_id, ''), model, coalesce(provider, '')), 0) as group_id,
      date_bin('15 minutes', created_at, '2000-01-01 00:00:00Z') as at, nullif(sum(cost), 0) as uncosted
    from {schema}.calls where settled and own_cost is null group by 1, 2) as found
  where kept.part = 0 and kept.group_id = found.group_id and kept.at = found.at and kept.own_unknown < kept.charged;
-- The next hour makes all parts but the first again, a few hours at a time.
delete from {schema}.call_sums where part > 0;
update {schema}.call_sums_state set folded = '-infinity';
