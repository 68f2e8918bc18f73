-- Accounts' money: what moved it, each call that it was set aside for, and sums of both. Amounts are nano-USD. Tables that grow with
-- calls have the account first in their keys, so that an engine that distributes rows by account can carry them.

create table {schema}.balances (
  account_id text primary key,
  balance bigint not null default 0,
  held bigint not null default 0,
  -- The account's sides: together with its money they are zero.
  revenue bigint not null default 0,
  funding bigint not null default 0
);
comment on column {schema}.balances.balance is 'What may still be spent: what has moved, less what authorizations set aside';
comment on column {schema}.balances.held is 'The sum of the account''s rows of deposits';

create view {schema}.totals as
  select coalesce(sum(balance + held), 0)::bigint as balance, coalesce(sum(revenue), 0)::bigint as revenue,
    coalesce(sum(funding), 0)::bigint as funding from {schema}.balances;

create function {schema}.refuse_ledger_change() returns trigger language plpgsql as $body$
begin
  raise exception 'rows of %.% are immutable', tg_table_schema, tg_table_name;
end
$body$;

-- Money that comes in: beside what does not expire, what does, and plans that bring it again and again.
create table {schema}.grants (
  id uuid not null default gen_random_uuid(),
  account_id text not null,
  kind text not null,
  amount bigint not null check (amount > 0),
  reason text not null,
  -- Names the event that the money came by.
  reference text not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  -- Names the plan's term that brought it; windows count over all grants of one source, from `anchor` on.
  source text,
  -- USD by window: {"5h": "5000000000"}.
  windows json,
  anchor timestamptz,
  primary key (account_id, id),
  unique (account_id, reference),
  constraint grants_windowed check ((windows is null) or (source is not null and anchor is not null and expires_at is not null))
);
create trigger immutable before update or delete or truncate on {schema}.grants
  for each statement execute function {schema}.refuse_ledger_change();

-- Names of events that moved money outside of calls. A second arrival of the same event finds the first one here, whatever account it names:
-- so this table has no account in its key. It has a row for each such movement, none for calls.
create table {schema}.movement_references (
  reference text not null,
  -- Those of grants and those of other movements are apart.
  is_grant boolean not null,
  account_id text not null,
  primary key (reference, is_grant)
);
create trigger immutable before update or delete or truncate on {schema}.movement_references
  for each statement execute function {schema}.refuse_ledger_change();

-- What is left of each grant that expires: its amount less its allocations. Money that does not expire needs no row: it is the rest
-- of the balance.
create table {schema}.grant_balances (
  grant_id uuid not null,
  account_id text not null,
  remaining bigint not null check (remaining >= 0),
  expires_at timestamptz not null,
  primary key (account_id, grant_id),
  foreign key (account_id, grant_id) references {schema}.grants (account_id, id)
);
create index grant_balances_open on {schema}.grant_balances (account_id, expires_at) where remaining > 0;

-- What a movement took out of a grant that expires. Immutable, like the movement.
create table {schema}.allocations (
  seq bigint not null,
  grant_id uuid not null,
  amount bigint not null check (amount > 0),
  -- The source of the grant, and when the money was set aside: the windows' sums are made of these.
  source text,
  held_at timestamptz not null,
  account_id text not null,
  primary key (account_id, seq, grant_id),
  foreign key (account_id, grant_id) references {schema}.grants (account_id, id)
);
create index allocations_grant on {schema}.allocations (account_id, grant_id);
create index allocations_window on {schema}.allocations (account_id, source, held_at) include (amount) where source is not null;
create trigger immutable before update or delete or truncate on {schema}.allocations
  for each statement execute function {schema}.refuse_ledger_change();

-- A plan that an account has bought: brings `amount` for each period from `starts_at` on.
create table {schema}.terms (
  id uuid not null default gen_random_uuid(),
  account_id text not null,
  plan text not null,
  amount bigint not null check (amount >= 0),
  every text check (every in ('day', 'week', 'month')),
  windows json,
  starts_at timestamptz not null,
  ends_at timestamptz,
  primary key (account_id, id),
  check ((amount > 0) = (every is not null))
);
create index terms_account on {schema}.terms (account_id, starts_at);

-- Numbers of movements, in the order of each account's.
create sequence {schema}.movement_numbers;

-- Movements that are no call: money that comes in and goes out.
create table {schema}.ledger (
  seq bigint not null default nextval('{schema}.movement_numbers'),
  account_id text not null,
  kind text not null,
  grant_id uuid,
  -- Names the event that a row came by, where no grant does.
  reference text,
  -- Double entry in one row: the account's side, then the gateway's own sides.
  amount bigint not null,
  revenue bigint not null default 0,
  funding bigint not null default 0,
  -- All money of the account, with what is set aside.
  balance_after bigint not null,
  detail jsonb not null default '{}',
  created_at timestamptz not null,
  primary key (account_id, seq),
  constraint ledger_kind check (kind in ('CREDIT', 'DEBIT', 'PURCHASE', 'REFUND', 'PAYOUT', 'EXPIRE')),
  constraint ledger_balanced check (amount + revenue + funding = 0),
  -- EXPIRE and PAYOUT take back what is left of a grant.
  constraint ledger_granted check ((kind in ('CREDIT', 'REFUND', 'EXPIRE', 'PAYOUT')) = (grant_id is not null)),
  constraint ledger_referred check ((kind in ('DEBIT', 'PURCHASE', 'PAYOUT')) = (reference is not null))
);
create unique index ledger_grant on {schema}.ledger (account_id, grant_id) where kind in ('CREDIT', 'REFUND');
create unique index ledger_expiry on {schema}.ledger (account_id, grant_id) where kind = 'EXPIRE';
create unique index ledger_reference on {schema}.ledger (account_id, reference) where reference is not null;
create index ledger_seq on {schema}.ledger (seq);
create index ledger_at on {schema}.ledger (created_at);
create trigger immutable before update or delete or truncate on {schema}.ledger
  for each statement execute function {schema}.refuse_ledger_change();

-- Charges that were given back; the sum of a request's refunds never exceeds its charge. A call that was archived can still be refunded.
create table {schema}.refunds (
  account_id text not null,
  grant_id uuid not null,
  request_id uuid not null,
  amount bigint not null check (amount > 0),
  primary key (account_id, grant_id),
  foreign key (account_id, grant_id) references {schema}.grants (account_id, id)
);
create index refunds_request on {schema}.refunds (account_id, request_id);
create trigger immutable before update or delete or truncate on {schema}.refunds
  for each statement execute function {schema}.refuse_ledger_change();

-- Holds of work that outlives its exchange, its process and its node: no journal has them. A row comes with the order and goes with its end,
-- in the transactions of those who work.
create table {schema}.deposits (
  request_id uuid not null,
  account_id text not null,
  held bigint not null check (held >= 0),
  -- What the charge depends on, as it was when the money was set aside: price version, ratio, bounds.
  terms json not null,
  created_at timestamptz not null,
  primary key (account_id, request_id)
);
-- Whether a request is open, where its account is not known.
create index deposits_request on {schema}.deposits (request_id);
-- What is set aside for a key's orders: read once for each key with a spend cap.
create index deposits_key on {schema}.deposits ((terms->>'key'));

-- Each call that money was set aside for and that has ended. A hold moves nothing: it lives in the journal. The row of a charged call is its
-- movement. The request log adds what it knows, in the columns from `bytes_out` to `timeline`, and removes it after its retention; what it
-- knows of other requests is in its own table.
create table {schema}.calls (
  id uuid not null,
  account_id text not null,
  key_id text,
  model text not null,
  plan text,
  -- Whether it was charged; otherwise it cost nothing and `reason` says why.
  settled boolean not null,
  reason text,
  provider text,
  target_model text,
  classes jsonb,
  -- The prompt as it was estimated for the hold; against `classes` it shows how good the estimate is.
  estimated_input bigint,
  held bigint not null,
  cost bigint not null check (cost >= 0),
  -- What it cost the operator; null: unknown.
  own_cost bigint check (own_cost >= 0),
  -- What attempts cost that the operator bears, at the model's official price.
  absorbed bigint not null check (absorbed >= 0),
  estimated boolean not null,
  terminal boolean not null,
  finish text,
  upstream_id text,
  -- nano-USD by class: what the charge is made of.
  price json,
  price_version text,
  tier text,
  ratio text,
  attempts json not null,
  held_at timestamptz not null,
  created_at timestamptz not null,
  bytes_out bigint,
  bytes_in integer,
  first_byte_ms real,
  total_ms real,
  -- Null: the request's facts are in the table `requests`, lost in a crash, or removed.
  status smallint,
  -- Attempts, with those that were not sent.
  tries smallint,
  streamed boolean,
  operation text,
  protocol text,
  outcome text,
  -- Only what differs from `model`, `provider` and `target_model`: the model as it was asked for, and the last attempt if it was not sent.
  requested_model text,
  last_provider text,
  last_model text,
  error_kind text,
  error_code text,
  dropped text[],
  story text,
  timelines bigint,
  -- From 1.
  timeline integer,
  seq bigint,
  balance_after bigint,
  -- The writer says whether it took long: to compute that from its id and times costs the database more than an index entry.
  -- Null: it ended within five minutes after its arrival, as nearly all do.
  is_long boolean,
  primary key (account_id, id),
  constraint calls_settled check (settled or cost = 0),
  constraint calls_moved check ((seq is null) = (cost = 0) and (balance_after is null) = (cost = 0))
);
comment on column {schema}.calls.story is 'The timeline as JSON; where few calls came together. Otherwise it is number `timeline` of the row `timelines` of call_timelines';
comment on column {schema}.calls.attempts is 'Those that were sent: objects, or arrays by place; see attempts_of';
comment on column {schema}.calls.balance_after is 'All money of the account, with what is set aside';
-- Ids are in the order of arrival: the primary key has the requests of an account, newest first. The requests of all accounts, one of them,
-- and those of a span are found here; the long ones of a span by the times of their ends. An index of ranges of `created_at` is good only as
-- long as rows lie in the order of their times: rows from which the request log's retention has removed its columns are written anew.
create index calls_id on {schema}.calls (id);
create index calls_long on {schema}.calls (created_at) where is_long;
-- The statement of an account, and that of all.
create unique index calls_movements on {schema}.calls (account_id, seq) where seq is not null;
create index calls_seq on {schema}.calls (seq) where seq is not null;

-- Timelines of one account's requests in one batch: they are nearly alike, so together they compress to a small part.
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

-- When a request arrived, by its id; of an id of another kind some time that no call has.
create function {schema}.arrival_of(id uuid) returns timestamptz language sql immutable parallel safe as $body$
  select to_timestamp(least(('x' || left(id::text, 8) || substr(id::text, 10, 4))::bit(48)::bigint::float8 / 1000, 100000000000::float8))
$body$;

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

-- All calls that arrived before this have lost their facts.
create table {schema}.facts_forgotten (
  one boolean primary key default true check (one),
  before timestamptz not null
);

-- Old charged calls move to sealed files (setting billing.archive.after), by account and month. What is left of each is its charge.
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
create index archived_charges_id on {schema}.archived_charges (id);
-- The statement of all accounts.
create index archived_charges_seq on {schema}.archived_charges (seq);
create trigger immutable before update or delete or truncate on {schema}.archived_charges
  for each statement execute function {schema}.refuse_ledger_change();

-- Calls may be deleted by a statement that removes exactly those of one file whose row this transaction has written, and leaves their charges.
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
  if exists (select account_id, seq, id, cost, balance_after, created_at from removed
      except select account_id, seq, id, cost, balance_after, created_at from {schema}.archived_charges) then
    raise exception 'charges of these rows of %.% are not among those of archived calls', tg_table_schema, tg_table_name;
  end if;
  return null;
end
$body$;

create trigger immutable before update of id, account_id, key_id, model, plan, settled, reason, provider, target_model, classes,
    estimated_input, held, cost, own_cost, absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio,
    attempts, held_at, created_at, seq, balance_after, is_long or truncate on {schema}.calls
  for each statement execute function {schema}.refuse_ledger_change();
create trigger archived after delete on {schema}.calls referencing old table as removed
  for each statement execute function {schema}.refuse_unarchived_deletion();

-- Calls as the request log shows them.
create view {schema}.call_requests as
  select id, to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint::float8 / 1000) as received_at,
    operation, protocol, account_id, key_id, coalesce(requested_model, model) as model, coalesce(last_provider, provider) as provider,
    coalesce(last_model, target_model) as upstream_model, streamed, status, outcome, error_kind, error_code, tries as attempts,
    first_byte_ms, total_ms, bytes_in, bytes_out, classes as usage, case when settled then estimated end as usage_estimated, finish,
    upstream_id, dropped,
    coalesce(story, (select stories[calls.timeline] from {schema}.call_timelines as kept
      where kept.account_id = calls.account_id and kept.id = calls.timelines))::json as story
  from {schema}.calls where status is not null;

-- Everything that moved money, as audit, pages and exports read it.
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

-- Sums of calls are kept, by quarters of an hour, hours and UTC days, in several groupings (`part`): pages and reports read these.
-- Part 0 has all dimensions, by quarters, and is written with the calls. The others are made of it, up to `folded`.
create table {schema}.call_sums_groups (
  -- A hash of the others.
  id bigint not null,
  -- Empty in parts that do not tell accounts apart.
  account_id text not null,
  key_id text not null,
  model text not null,
  provider text not null,
  primary key (account_id, id)
);
-- What a key has spent is in the sums.
create index call_sums_groups_key on {schema}.call_sums_groups (key_id);

create table {schema}.call_sums (
  account_id text not null,
  group_id bigint not null,
  at timestamptz not null,
  part smallint not null,
  charged bigint,
  cost bigint,
  own_cost bigint,
  own_unknown bigint,
  absorbed bigint,
  "input" bigint,
  "cache_read" bigint,
  "cache_write_5m" bigint,
  "cache_write_1h" bigint,
  "input_audio" bigint,
  "input_image" bigint,
  "output" bigint,
  "reasoning" bigint,
  "output_audio" bigint,
  "output_image" bigint,
  "image" bigint,
  "second" bigint,
  "request" bigint,
  "call" bigint,
  "web_search" bigint,
  "web_fetch" bigint,
  "code_execution" bigint,
  "file_search" bigint,
  "search" bigint,
  "character" bigint,
  "audio" bigint,
  "cache_read_audio" bigint,
  "cache_read_image" bigint,
  -- Charges of calls whose own cost is not known: the margin is that of the others.
  uncosted bigint,
  -- Sums are read by part and time, of all accounts or of the groups of one.
  primary key (part, group_id, at, account_id)
) with (fillfactor = 90);
create index call_sums_at on {schema}.call_sums (part, at) where part > 0;
-- Its rows come in the order of their times, so an index of ranges will do: it costs the calls nothing.
create index call_sums_fine on {schema}.call_sums using brin (at) with (pages_per_range = 8, autosummarize = on) where part = 0;

create table {schema}.call_sums_state (
  one boolean primary key default true check (one),
  folded timestamptz not null default '-infinity',
  -- Parts that are only worth it where there is much traffic begin with this day.
  rich_from timestamptz not null default 'infinity',
  -- Earlier rows were deleted, so that their sums cannot be made again.
  rows_from timestamptz not null default '-infinity'
);
insert into {schema}.call_sums_state default values;

-- What calls are for: each tag of a call that has any, and sums by tag. Calls without tags have no row here.
create table {schema}.call_tags (
  account_id text not null,
  -- NAME=VALUE.
  tag text collate "C" not null,
  -- The call.
  id uuid not null,
  primary key (account_id, tag, id)
);
-- The tags of a call; and their removal with the facts of its request.
create index call_tags_id on {schema}.call_tags (id);

-- By quarters of an hour, since the days of every time zone consist of these. The measures are those of call_sums.
create table {schema}.tag_sums (
  account_id text not null,
  -- NAME=VALUE. Of an hour with many of them, further ones are NAME=* together.
  tag text collate "C" not null,
  at timestamptz not null,
  key_id text not null,
  model text not null,
  charged bigint,
  cost bigint,
  own_cost bigint,
  own_unknown bigint,
  absorbed bigint,
  uncosted bigint,
  "input" bigint,
  "cache_read" bigint,
  "cache_write_5m" bigint,
  "cache_write_1h" bigint,
  "input_audio" bigint,
  "input_image" bigint,
  "cache_read_audio" bigint,
  "cache_read_image" bigint,
  "output" bigint,
  "reasoning" bigint,
  "output_audio" bigint,
  "output_image" bigint,
  "image" bigint,
  "second" bigint,
  "request" bigint,
  "call" bigint,
  "web_search" bigint,
  "web_fetch" bigint,
  "code_execution" bigint,
  "file_search" bigint,
  "search" bigint,
  "character" bigint,
  "audio" bigint,
  primary key (account_id, tag, at, key_id, model)
) with (fillfactor = 90);
-- How many tags an account has in an hour.
create index tag_sums_at on {schema}.tag_sums (account_id, at);

-- How far each journal has been applied, and who may go on.
create table {schema}.journal_cursor (
  journal text primary key,
  owner text not null,
  applied bigint not null default 0,
  updated_at timestamptz not null,
  -- Counts the runs that wrote a journal; the journal's own directory keeps the same count. An older copy of either shows.
  epoch bigint not null default 0,
  -- Asks for slices and batches are numbered by their run. An ask of an earlier run, or one whose sender has given it up and gone
  -- on, may still wait for a lock here: what it says of the journal is no longer so, and it must change nothing.
  asked bigint not null default 0,
  -- For people who look at the processes: which version of the gateway each of them runs, and since when.
  version text,
  started_at timestamptz
);

-- Leases: the part of an account's balance that each process may spend from memory.
create table {schema}.leases (
  account_id text not null,
  -- The process, by the name of its journal, and its run: the owner of that journal's cursor.
  node text not null,
  epoch text not null,
  -- What its journal may still take from the balance beyond what the ledger has of it. Below zero: it has taken more.
  amount bigint not null,
  -- By this database's clock. No other process is given an expired lease: its node's journal may owe it.
  expires_at timestamptz not null,
  open bigint not null default 0 check (open >= 0),
  primary key (account_id, node)
) with (fillfactor = 70);
comment on column {schema}.leases.open is 'Of the amount, what calls held when the process told it last';
create index leases_node on {schema}.leases (node);

-- One statement for one slice, under the account's lock. Each statement in here sees what was committed before it began,
-- so the sums are true once the lock is held; the parts of one plain statement would see the state before they waited.
-- Whether the ask still counts is looked at behind that wait too, and the cursor stays locked to the end: a run that takes
-- the journal over begins after this slice, or without it.
--   ask_number  counts the asks and batches of one run; the asks of one statement have the same
--   pending     what the node's journal has taken and the ledger does not have yet; below zero: given back
--   keep        what the node goes on spending meanwhile: it is never taken from it
--   need        what the calls that wait there cost together; smallest: the cheapest of them
--   wish        what the node would like to have
--   locked      what of the balance cannot be spent while the lease lasts; null: not worked out, so that an account with
--               grants that expire gets no answer
-- `amount` is the lease afterwards; `rest` is what the node could have if nothing were locked, `allowed` what it could
-- have as it is; `elsewhere` is what other nodes that live could return of theirs; `held` is what their calls hold.
create function {schema}.take_slice(
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

-- Names this database for good: a copy of it has the same name, another one has another. The first start that serves gives it.
create table {schema}.identity (
  one boolean primary key default true check (one),
  id uuid not null
);

-- A process found that this database had acknowledged more than it has: it was put back to an earlier time. Until an operator
-- accepts that, no money comes in.
create table {schema}.restores (
  id bigint generated always as identity primary key,
  -- The process, by the name of its journal.
  journal text not null,
  found_at timestamptz not null default now(),
  -- What happened from here on, to `until`, may be missing.
  since timestamptz not null,
  until timestamptz not null,
  -- Ended calls that came back from the journal.
  calls bigint not null,
  -- Movements of money that the process remembers and this database lacks.
  lost json not null,
  accepted_at timestamptz
);
create unique index restores_waiting on {schema}.restores (journal) where accepted_at is null;
