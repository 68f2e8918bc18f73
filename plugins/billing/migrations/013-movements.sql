-- The ledger has movements of money alone, and each call one row of its own: a hold moves nothing, it lives in the journal (and,
-- for work that is done later, in `deposits`). Processes set aside what their calls hold within their leases.
-- The earlier tables are kept under the names `…_before`; nothing reads them.

alter table {schema}.ledger rename to ledger_before;
alter table {schema}.ledger_before rename constraint ledger_pkey to ledger_before_pkey;
drop index {schema}.ledger_account, {schema}.ledger_request, {schema}.ledger_end, {schema}.ledger_grant, {schema}.ledger_lapse,
  {schema}.ledger_reference, {schema}.ledger_at, {schema}.ledger_entries, {schema}.ledger_account_entries;

create table {schema}.ledger (
  seq bigint generated always as identity primary key,
  account_id text not null,
  kind text not null check (kind in ('CHARGE', 'CREDIT', 'DEBIT', 'PURCHASE', 'REFUND', 'PAYOUT', 'EXPIRE')),
  -- Of a charge: its row in `calls` has the formula.
  request_id uuid,
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
  constraint ledger_balanced check (amount + revenue + funding = 0),
  constraint ledger_charged check ((kind = 'CHARGE') = (request_id is not null)),
  -- EXPIRE and PAYOUT take back what is left of a grant.
  constraint ledger_granted check ((kind in ('CREDIT', 'REFUND', 'EXPIRE', 'PAYOUT')) = (grant_id is not null)),
  constraint ledger_referred check ((kind in ('DEBIT', 'PURCHASE', 'PAYOUT')) = (reference is not null))
);

insert into {schema}.ledger
    (seq, account_id, kind, request_id, grant_id, reference, amount, revenue, funding, balance_after, detail, created_at)
  overriding system value
  select seq, account_id, case kind when 'SETTLE' then 'CHARGE' when 'LAPSE' then 'EXPIRE' else kind end, request_id, grant_id,
    reference, amount + held, revenue, funding + absorbed,
    sum(amount + held) over (partition by account_id order by seq),
    case kind when 'SETTLE' then '{}'::jsonb else detail end, created_at
  from {schema}.ledger_before where request_id is null or revenue > 0 order by seq;
select setval(pg_get_serial_sequence('{schema}.ledger', 'seq'), coalesce(max(seq), 0) + 1, false) from {schema}.ledger_before;

create index ledger_account on {schema}.ledger (account_id, seq);
create unique index ledger_request on {schema}.ledger (request_id) where request_id is not null;
create unique index ledger_grant on {schema}.ledger (grant_id) where kind in ('CREDIT', 'REFUND');
create unique index ledger_expiry on {schema}.ledger (grant_id) where kind = 'EXPIRE';
create unique index ledger_reference on {schema}.ledger (reference) where reference is not null;
-- Rows come nearly in the order of their times, so an index of ranges will do: it costs the calls nothing.
create index ledger_at on {schema}.ledger using brin (created_at) with (pages_per_range = 16, autosummarize = on);
create index ledger_entries on {schema}.ledger (seq) where request_id is null;
create index ledger_account_entries on {schema}.ledger (account_id, seq) where request_id is null;
create trigger immutable before update or delete or truncate on {schema}.ledger
  for each statement execute function {schema}.refuse_ledger_change();

alter table {schema}.draws drop constraint draws_seq_fkey;
alter table {schema}.draws add constraint draws_seq_fkey foreign key (seq) references {schema}.ledger (seq);

-- Each call that money was set aside for and that has ended.
create table {schema}.calls (
  id uuid primary key,
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
  -- [{"number", "provider", "model", "credential", "protocol", "result", "status", "durationMs", "error", "startedAt", "bearer",
  -- "absorbed", "usage", "estimated"}], those that were sent.
  attempts json not null,
  held_at timestamptz not null,
  created_at timestamptz not null,
  constraint calls_settled check (settled or cost = 0)
);

with tried as (
  select request_id, json_agg(json_strip_nulls(json_build_object('number', number, 'provider', provider, 'model', model,
      'credential', credential, 'protocol', protocol, 'result', result, 'status', status, 'durationMs', duration_ms,
      'error', error, 'startedAt', round(extract(epoch from started_at) * 1000)::bigint, 'bearer', borne_by,
      'absorbed', case when absorbed > 0 then absorbed::text end, 'usage', consumed,
      'estimated', case when estimated then true end)) order by number) as attempts
  from {schema}.attempts group by request_id
)
insert into {schema}.calls
    (id, account_id, key_id, model, plan, settled, reason, provider, target_model, classes, estimated_input, held, cost, own_cost,
    absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio, attempts, held_at, created_at)
  select ending.request_id, ending.account_id, usage.key_id, coalesce(usage.model, ending.detail->>'model', ''), usage.plan,
    usage.request_id is not null, ending.detail->>'reason', usage.provider, usage.target_model, usage.classes,
    usage.estimated_input, coalesce(usage.held, -ending.held), coalesce(usage.cost, 0), usage.own_cost, ending.absorbed,
    coalesce(usage.estimated, false), coalesce(usage.terminal, false), usage.finish, usage.upstream_id,
    (ending.detail->'price')::json, usage.price_version, usage.tier, usage.ratio, coalesce(tried.attempts, '[]'),
    coalesce(hold.created_at, ending.created_at), ending.created_at
  from {schema}.ledger_before as ending
  left join {schema}.ledger_before as hold on hold.request_id = ending.request_id and hold.kind = 'HOLD'
  left join {schema}.usage as usage on usage.request_id = ending.request_id
  left join tried on tried.request_id = ending.request_id
  where ending.kind in ('SETTLE', 'VOID', 'EXPIRE') and ending.request_id is not null order by ending.seq;

create index calls_account on {schema}.calls (account_id, created_at);
create index calls_at on {schema}.calls (created_at, id);
-- What a key has spent since some moment: read once for each key with a spend cap.
create index calls_key on {schema}.calls (key_id, created_at) include (cost);

create trigger immutable before update or delete or truncate on {schema}.calls
  for each statement execute function {schema}.refuse_ledger_change();

alter table {schema}.refunds drop constraint refunds_request_id_fkey;
alter table {schema}.refunds add constraint refunds_request_id_fkey foreign key (request_id) references {schema}.calls (id);
alter table {schema}.usage rename to usage_before;
alter table {schema}.attempts rename to attempts_before;

alter table {schema}.totals rename column available to balance;
update {schema}.totals set balance = balance + held, funding = funding + absorbed;
alter table {schema}.totals drop column held, drop column absorbed;

-- What calls held comes back: the journal charges what becomes of them.
update {schema}.balances as balances set balance = balances.balance + balances.held - sums.held, held = sums.held
  from (select account_id, coalesce((select sum(held) from {schema}.deposits as deposits
    where deposits.account_id = known.account_id), 0)::bigint as held from {schema}.balances as known) as sums
  where sums.account_id = balances.account_id and sums.held <> balances.held;
comment on column {schema}.balances.balance is 'What may still be spent: what has moved, less what authorizations set aside';
comment on column {schema}.balances.held is 'The sum of the account''s rows of deposits';

alter table {schema}.leases add column open bigint not null default 0 check (open >= 0);
comment on column {schema}.leases.open is 'Of the amount, what calls held when the process told it last';

drop function {schema}.take_slice(text, text, bigint, text, bigint, bigint, bigint, bigint, bigint, bigint, bigint);

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
  pooled := exists (select from {schema}.pots as pots where pots.account_id = the_account and pots.remaining > 0);
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
