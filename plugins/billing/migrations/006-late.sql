-- Lists of movements up to a time begin near it: behind the first charge of a call that ended 20 minutes later there are only those that came
-- late. The writer of a row says whether it is one. Null, as earlier versions and their files have it: not known. Of the calls that there are,
-- those are late that have a higher number than one that ended 10 minutes after them; without a rewrite all others are said not to be.
alter table {schema}.calls add column if not exists is_late boolean default false;
alter table {schema}.calls alter column is_late drop default;
alter table {schema}.archived_charges add column if not exists is_late boolean;
comment on column {schema}.calls.is_late is 'Whether a charge was written more than 10 minutes after its call had ended; null: not known, or no charge';

update {schema}.calls as calls set is_late = true
from (select account_id, id, created_at, max(created_at) over (order by seq) as latest from {schema}.calls where seq is not null) as late
where late.created_at < late.latest - interval '10 minutes' and calls.account_id = late.account_id and calls.id = late.id;

create index if not exists calls_late on {schema}.calls (account_id, seq) where seq is not null and is_late is not false;
create index if not exists calls_late_seq on {schema}.calls (seq) where seq is not null and is_late is not false;
create index if not exists archived_charges_late on {schema}.archived_charges (account_id, seq) where is_late is not false;
create index if not exists archived_charges_late_seq on {schema}.archived_charges (seq) where is_late is not false;

create or replace trigger immutable before update of id, account_id, key_id, model, plan, person, project, settled, reason, provider, target_model, classes,
    estimated_input, held, cost, own_cost, absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio,
    attempts, held_at, created_at, seq, balance_after, is_long, is_late or truncate on {schema}.calls
  for each statement execute function {schema}.refuse_ledger_change();
