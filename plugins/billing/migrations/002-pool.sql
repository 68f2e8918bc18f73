-- The pool: money that expires beside money that does not, and plans that bring it again and again. Amounts are nano-USD.

-- What is set aside for running requests; balance and held together are what has not been charged yet.
alter table {schema}.balances add column held bigint not null default 0;
update {schema}.balances as balances set held = sums.held
  from (select account_id, sum(held)::bigint as held from {schema}.ledger group by account_id) as sums
  where sums.account_id = balances.account_id;

alter table {schema}.grants
  add column expires_at timestamptz,
  -- Names the plan's term that brought it; windows count over all grants of one source, from `anchor` on.
  add column source text,
  -- USD by window: {"5h": "5000000000"}.
  add column windows json,
  add column anchor timestamptz,
  add constraint grants_windowed check ((windows is null) or (source is not null and anchor is not null and expires_at is not null));

-- What is left of each grant that expires: its amount less its draws. Money that does not expire needs no row: it is the rest
-- of the balance.
create table {schema}.pots (
  grant_id uuid primary key references {schema}.grants (id),
  account_id text not null,
  remaining bigint not null check (remaining >= 0),
  expires_at timestamptz not null
);
create index pots_open on {schema}.pots (account_id, expires_at) where remaining > 0;

-- What a ledger row took out of a grant that expires. Immutable, like the row.
create table {schema}.draws (
  seq bigint not null references {schema}.ledger (seq),
  grant_id uuid not null references {schema}.grants (id),
  amount bigint not null check (amount > 0),
  -- The source of the grant, and when the money was set aside: the windows' sums are made of these.
  source text,
  held_at timestamptz not null,
  primary key (seq, grant_id)
);
create index draws_grant on {schema}.draws (grant_id);
create index draws_window on {schema}.draws (source, held_at) include (amount) where source is not null;

-- A plan that an account has bought: brings `amount` for each period from `starts_at` on.
create table {schema}.terms (
  id uuid primary key default gen_random_uuid(),
  account_id text not null,
  plan text not null,
  amount bigint not null check (amount >= 0),
  every text check (every in ('day', 'week', 'month')),
  windows json,
  starts_at timestamptz not null,
  ends_at timestamptz,
  check ((amount > 0) = (every is not null))
);
create index terms_account on {schema}.terms (account_id, starts_at);

alter table {schema}.ledger
  -- Names the event that a row came by, where no grant does.
  add column reference text,
  drop constraint ledger_kind_check,
  drop constraint ledger_keyed,
  drop constraint ledger_granted,
  add constraint ledger_kind check (kind in
    ('CREDIT', 'DEBIT', 'PURCHASE', 'REFUND', 'PAYOUT', 'LAPSE', 'HOLD', 'EXTEND', 'SETTLE', 'VOID', 'EXPIRE')),
  add constraint ledger_keyed check ((kind in ('HOLD', 'EXTEND', 'SETTLE', 'VOID', 'EXPIRE')) = (request_id is not null)),
  -- LAPSE and PAYOUT take back what is left of a grant.
  add constraint ledger_granted check ((kind in ('CREDIT', 'REFUND', 'LAPSE', 'PAYOUT')) = (grant_id is not null)),
  add constraint ledger_referred check ((kind in ('DEBIT', 'PURCHASE', 'PAYOUT')) = (reference is not null));
drop index {schema}.ledger_grant;
create unique index ledger_grant on {schema}.ledger (grant_id) where kind in ('CREDIT', 'REFUND');
create unique index ledger_lapse on {schema}.ledger (grant_id) where kind = 'LAPSE';
create unique index ledger_reference on {schema}.ledger (reference) where reference is not null;

-- A charge that was given back; the sum of a request's refunds never exceeds its charge.
create table {schema}.refunds (
  grant_id uuid primary key references {schema}.grants (id),
  request_id uuid not null references {schema}.usage (request_id),
  amount bigint not null check (amount > 0)
);
create index refunds_request on {schema}.refunds (request_id);

create trigger immutable before update or delete or truncate on {schema}.draws
  for each statement execute function {schema}.refuse_ledger_change();
create trigger immutable before update or delete or truncate on {schema}.refunds
  for each statement execute function {schema}.refuse_ledger_change();
