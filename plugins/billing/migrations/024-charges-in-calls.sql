-- The row of a charged call is its movement: `calls` has its number and the balance after it, `ledger` has what is no call. Tables that
-- grow with calls have the account first in their keys, so that an engine that distributes rows by account can carry them.

-- Numbers of movements, in the order of each account's.
alter table {schema}.ledger alter column seq drop identity;
create sequence {schema}.movement_numbers;
select setval('{schema}.movement_numbers', greatest((select max(seq) from {schema}.ledger), 1), exists (select from {schema}.ledger));
alter table {schema}.ledger alter column seq set default nextval('{schema}.movement_numbers');

drop trigger immutable on {schema}.ledger;
drop trigger immutable on {schema}.calls;
drop trigger archived on {schema}.calls;

alter table {schema}.calls add column seq bigint, add column balance_after bigint;
update {schema}.calls as calls set seq = charges.seq, balance_after = charges.balance_after
  from {schema}.ledger as charges where charges.request_id = calls.id;
comment on column {schema}.calls.balance_after is 'All money of the account, with what is set aside';

-- What the database keeps of an archived call.
create table {schema}.archived_charges (
  account_id text not null,
  seq bigint not null,
  id uuid not null,
  cost bigint not null check (cost > 0),
  balance_after bigint not null,
  created_at timestamptz not null,
  primary key (account_id, seq),
  constraint archived_charges_call unique (account_id, id)
);
insert into {schema}.archived_charges (account_id, seq, id, cost, balance_after, created_at)
  select account_id, seq, request_id, revenue, balance_after, created_at from {schema}.ledger as ledger
  where request_id is not null and not exists (select from {schema}.calls as calls where calls.id = ledger.request_id);
create index archived_charges_id on {schema}.archived_charges (id);
create trigger immutable before update or delete or truncate on {schema}.archived_charges
  for each statement execute function {schema}.refuse_ledger_change();

-- Allocations refer to movements of any kind.
drop trigger immutable on {schema}.draws;
alter table {schema}.draws drop constraint draws_seq_fkey;
alter table {schema}.draws rename to allocations;
alter table {schema}.allocations add column account_id text;
update {schema}.allocations as allocations set account_id = grants.account_id
  from {schema}.grants as grants where grants.id = allocations.grant_id;
alter table {schema}.allocations alter column account_id set not null, drop constraint draws_pkey;
alter table {schema}.allocations add primary key (account_id, seq, grant_id);
alter index {schema}.draws_grant rename to allocations_grant;
drop index {schema}.draws_window;
create index allocations_window on {schema}.allocations (account_id, source, held_at) include (amount) where source is not null;
create trigger immutable before update or delete or truncate on {schema}.allocations
  for each statement execute function {schema}.refuse_ledger_change();

alter table {schema}.pots rename to grant_balances;
alter table {schema}.grant_balances drop constraint pots_pkey;
alter table {schema}.grant_balances add primary key (account_id, grant_id);
alter index {schema}.pots_open rename to grant_balances_open;

alter table {schema}.ledger drop constraint ledger_charged, drop constraint ledger_kind_check, drop constraint ledger_granted;
drop index {schema}.ledger_request, {schema}.ledger_at, {schema}.ledger_entries, {schema}.ledger_account_entries, {schema}.ledger_entries_at,
  {schema}.ledger_account;
delete from {schema}.ledger where request_id is not null;
alter table {schema}.ledger drop column request_id, drop constraint ledger_pkey;
alter table {schema}.ledger add primary key (account_id, seq),
  add constraint ledger_kind check (kind in ('CREDIT', 'DEBIT', 'PURCHASE', 'REFUND', 'PAYOUT', 'EXPIRE')),
  -- EXPIRE and PAYOUT take back what is left of a grant.
  add constraint ledger_granted check ((kind in ('CREDIT', 'REFUND', 'EXPIRE', 'PAYOUT')) = (grant_id is not null));
create index ledger_seq on {schema}.ledger (seq);
create index ledger_at on {schema}.ledger (created_at);
create trigger immutable before update or delete or truncate on {schema}.ledger
  for each statement execute function {schema}.refuse_ledger_change();

alter table {schema}.calls rename column asked_model to requested_model;
alter table {schema}.calls drop constraint calls_pkey,
  add constraint calls_moved check ((seq is null) = (cost = 0) and (balance_after is null) = (cost = 0));
drop index {schema}.calls_account;
-- The requests of an account, newest first.
alter table {schema}.calls add primary key (account_id, id);
-- The requests of all accounts, newest first; one of them; those of a span.
create index calls_id on {schema}.calls (id);
-- The statement of an account, and that of all.
create unique index calls_movements on {schema}.calls (account_id, seq) where seq is not null;
create index calls_seq on {schema}.calls (seq) where seq is not null;

-- Each account's sides: together with its money they are zero.
alter table {schema}.balances add column revenue bigint not null default 0, add column funding bigint not null default 0;
insert into {schema}.balances as balances (account_id, revenue, funding)
  select account_id, sum(revenue), sum(funding) from (
    select account_id, revenue, funding from {schema}.ledger
    union all select account_id, cost, 0 from {schema}.calls where seq is not null
    union all select account_id, cost, 0 from {schema}.archived_charges) as sides group by account_id
  on conflict (account_id) do update set revenue = excluded.revenue, funding = excluded.funding;
drop table {schema}.totals;
create view {schema}.totals as
  select coalesce(sum(balance + held), 0)::bigint as balance, coalesce(sum(revenue), 0)::bigint as revenue,
    coalesce(sum(funding), 0)::bigint as funding from {schema}.balances;

-- Timelines of one account's requests in one batch.
update {schema}.calls as calls set story = kept.stories[calls.timeline], timelines = null, timeline = null
  from {schema}.call_timelines as kept where kept.id = calls.timelines;
drop view {schema}.call_requests;
drop table {schema}.call_timelines;
create table {schema}.call_timelines (
  account_id text not null,
  -- That of the batch.
  id bigint not null,
  -- The latest of its requests to arrive: it is removed when that is.
  newest uuid not null,
  stories text[] not null,
  primary key (account_id, id)
);
-- In the order of the batches, for their removal.
create index call_timelines_id on {schema}.call_timelines (id);
create sequence {schema}.timeline_numbers;

create view {schema}.call_requests as
  select id, to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint::float8 / 1000) as received_at,
    operation, protocol, account_id, key_id, coalesce(requested_model, model) as model, coalesce(last_provider, provider) as provider,
    coalesce(last_model, target_model) as upstream_model, streamed, status, outcome, error_kind, error_code, tries as attempts,
    first_byte_ms, total_ms, bytes_in, bytes_out, classes as usage, case when settled then estimated end as usage_estimated, finish,
    upstream_id, dropped,
    coalesce(story, (select stories[calls.timeline] from {schema}.call_timelines as kept
      where kept.account_id = calls.account_id and kept.id = calls.timelines))::json as story
  from {schema}.calls where status is not null;

create view {schema}.movements as
  select account_id, seq, 'CHARGE'::text as kind, id as request_id, null::uuid as grant_id, null::text as reference, -cost as amount,
    cost as revenue, 0::bigint as funding, balance_after, null::jsonb as detail, created_at
  from {schema}.calls where seq is not null
  union all
  select account_id, seq, 'CHARGE'::text, id, null::uuid, null::text, -cost, cost, 0::bigint, balance_after, null::jsonb, created_at
  from {schema}.archived_charges
  union all
  select account_id, seq, kind, null::uuid, grant_id, reference, amount, revenue, funding, balance_after, detail, created_at
  from {schema}.ledger;

-- Calls may be deleted by a statement that removes exactly those of one file whose row this transaction has written, and leaves their charges.
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
      from removed, lateral (select id, account_id, key_id, model, plan, settled, reason, provider, target_model, classes, held, cost,
        estimated_input, own_cost, absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio, attempts,
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

create or replace trigger immutable before update of id, account_id, key_id, model, plan, settled, reason, provider, target_model, classes,
    estimated_input, held, cost, own_cost, absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio,
    attempts, held_at, created_at, seq, balance_after or truncate on {schema}.calls
  for each statement execute function {schema}.refuse_ledger_change();
create trigger archived after delete on {schema}.calls referencing old table as removed
  for each statement execute function {schema}.refuse_unarchived_deletion();


create or replace function {schema}.take_slice(
  in the_node text, in the_epoch text, in ask_number bigint, in the_account text,
  in pending bigint, in keep bigint, in need bigint, in smallest bigint, in wish bigint, in locked bigint, in lasts_ms bigint,
  out owned boolean, out amount bigint, out allowed bigint, out rest bigint, out elsewhere bigint, out held bigint, out nodes bigint,
  out pooled boolean, out term text
) language plpgsql volatile as $body$
#variable_conflict use_variable
declare
  others bigint;
  ceiling bigint;
  kept bigint;
  wanted bigint;
  granted bigint;
begin
  select balances.balance into rest from {schema}.balances as balances where balances.account_id = the_account for update;
  rest := coalesce(rest, 0);
  update {schema}.journal_cursor as cursors set asked = ask_number
    where cursors.journal = the_node and cursors.owner = the_epoch and cursors.asked < ask_number;
  -- The first account of a statement has noted the number for all.
  owned := found or exists (select from {schema}.journal_cursor as cursors
    where cursors.journal = the_node and cursors.owner = the_epoch and cursors.asked = ask_number);
  if not owned then return; end if;
  select greatest(count(*) filter (where cursors.journal = the_node or cursors.updated_at > clock_timestamp() - interval '15 seconds'), 1)
    into nodes from {schema}.journal_cursor as cursors;
  pooled := exists (select from {schema}.grant_balances as known where known.account_id = the_account and known.remaining > 0);
  term := (select terms.id::text from {schema}.terms as terms where terms.account_id = the_account
    order by terms.starts_at desc limit 1);
  if pooled and locked is null then return; end if;
  -- Of what living processes have leased, they can return what their calls do not hold.
  select coalesce(sum(greatest(leases.amount, 0)) filter (where leases.node <> the_node), 0),
      coalesce(sum(greatest(leases.amount - leases.open, 0)) filter (where leases.node <> the_node and leases.expires_at > clock_timestamp()), 0),
      coalesce(sum(greatest(least(leases.amount, leases.open), 0)) filter (where leases.node <> the_node and leases.expires_at > clock_timestamp()), 0),
      coalesce(sum(leases.amount) filter (where leases.node = the_node), 0)
    into others, elsewhere, held, kept from {schema}.leases as leases where leases.account_id = the_account;
  ceiling := greatest(rest, 0) - others;
  rest := rest - others - pending;
  allowed := greatest(rest - coalesce(locked, 0), 0);
  -- An operator may have released the lease: then there is nothing to keep.
  kept := greatest(least(keep, kept - pending), 0);
  wanted := greatest(need, kept);
  -- A share of what is there while that is enough for those who wait; near zero exactly what they need, if it is there.
  granted := case
    when allowed < smallest then kept
    else least(allowed, greatest(wanted, least(wish, allowed / nodes)))
  end;
  -- Where a settlement took more than there was, the node that posted it owes that while others have leases.
  amount := case
    when greatest(granted, kept) = 0 then least(pending, ceiling)
    else pending + greatest(granted, kept)
  end;
  if amount = 0 then
    delete from {schema}.leases as leases where leases.account_id = the_account and leases.node = the_node;
  else
    insert into {schema}.leases as leases (account_id, node, epoch, amount, open, expires_at)
      values (the_account, the_node, the_epoch, amount, pending, clock_timestamp() + lasts_ms * interval '1 millisecond')
      on conflict on constraint leases_pkey
      do update set epoch = excluded.epoch, amount = excluded.amount, open = excluded.open, expires_at = excluded.expires_at;
  end if;
end
$body$;
