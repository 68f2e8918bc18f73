-- The writer of a call says whether it took long: to compute that from its id and times costs the database more than an index entry.
-- Null: it ended within five minutes after its arrival, as nearly all do.
alter table {schema}.calls add column is_long boolean;
update {schema}.calls set is_long = true where abs(date_part('epoch', created_at - {schema}.arrival_of(id)) - 150) > 150;
drop index {schema}.calls_long;
create index calls_long on {schema}.calls (created_at) where is_long;
create or replace trigger immutable before update of id, account_id, key_id, model, plan, settled, reason, provider, target_model, classes,
    estimated_input, held, cost, own_cost, absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio,
    attempts, held_at, created_at, seq, balance_after, is_long or truncate on {schema}.calls
  for each statement execute function {schema}.refuse_ledger_change();

-- The statement of all accounts.
create index archived_charges_seq on {schema}.archived_charges (seq);
