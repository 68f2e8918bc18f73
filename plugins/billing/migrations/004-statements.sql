-- What each account's money did in a month, sealed after its end. Each names the digest of the account's statement before.
create table {schema}.statements (
  account_id text not null,
  -- Its place among the account's statements, from 1 and without gaps.
  number integer not null check (number > 0),
  -- 2026-10, of this zone; and the instants that it reaches from and to.
  month text not null check (month ~ '^\d{4}-\d\d$'),
  zone text not null,
  from_at timestamptz not null,
  until_at timestamptz not null,
  -- The account's last movement when it was sealed: one with a higher number that belongs to an earlier month is a correction in the next one.
  seen_seq bigint not null,
  -- The first movement that no statement has. All that follow have a higher number.
  open_seq bigint not null,
  opening bigint not null,
  closing bigint not null,
  -- The last line of its file, without the digest.
  summary json not null,
  digest text not null,
  previous text,
  sealed_at timestamptz not null default now(),
  primary key (account_id, number),
  unique (account_id, month),
  constraint statements_chained check ((number = 1) = (previous is null))
);
create trigger immutable before update or delete or truncate on {schema}.statements
  for each statement execute function {schema}.refuse_ledger_change();

-- How far sealing has come, and which process goes on with it. The row comes with the first round.
create table {schema}.statement_state (
  one boolean primary key default true check (one),
  -- The month that is gone through, account by account, behind this one.
  month text not null check (month ~ '^\d{4}-\d\d$'),
  account_id text not null default '',
  owner text,
  owned_until timestamptz not null default '-infinity'
);
