-- Old charged calls move to sealed files (setting billing.archive.after), by account and month. What is left of each is its row of the ledger.
create table {schema}.archives (
  account_id text not null,
  -- Its place among the files of the account, from 1.
  number integer not null check (number > 0),
  -- In which its calls arrived (UTC): 2026-05.
  month text not null check (month ~ '^\d{4}-\d\d$'),
  calls integer not null check (calls > 0),
  cost bigint not null check (cost > 0),
  -- Of its calls, in the order of their ids; and when the first and the last of them ended.
  first_id uuid not null,
  last_id uuid not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  -- The first line of the file. Then each call has one, in the order of the ids.
  header text not null,
  -- SHA-256 of the file's lines, and that of the account's file before, which is in the header too.
  digest text not null,
  previous text,
  -- In the store of files, and as it is there.
  object text not null,
  bytes integer not null,
  archived_at timestamptz not null default now(),
  primary key (account_id, number)
);
-- Files of an account do not overlap, so the one that may have an id is the first that ends behind it.
create unique index archives_last on {schema}.archives (account_id, last_id);
create index archives_at on {schema}.archives (last_at);
create trigger immutable before update or delete or truncate on {schema}.archives
  for each statement execute function {schema}.refuse_ledger_change();

-- How far the archive has come, and which process goes on with it.
create table {schema}.archive_state (
  one boolean primary key default true check (one),
  -- The month that is gone through, account by account; of the account so far up to this call.
  month timestamptz not null default '-infinity',
  account_id text not null default '',
  after_id uuid not null default '00000000-0000-0000-0000-000000000000',
  owner text,
  owned_until timestamptz not null default '-infinity'
);
insert into {schema}.archive_state default values;

-- Calls may be deleted by a statement that removes exactly those of one file whose row this transaction has written.
create function {schema}.refuse_unarchived_deletion() returns trigger language plpgsql as $body$
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
  return null;
end
$body$;

create or replace trigger immutable before update of id, account_id, key_id, model, plan, settled, reason, provider, target_model, classes,
    estimated_input, held, cost, own_cost, absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio,
    attempts, held_at, created_at or truncate on {schema}.calls
  for each statement execute function {schema}.refuse_ledger_change();
create trigger archived after delete on {schema}.calls referencing old table as removed
  for each statement execute function {schema}.refuse_unarchived_deletion();

-- A call that was archived can still be refunded: the ledger has its charge.
alter table {schema}.refunds drop constraint refunds_request_id_fkey;
