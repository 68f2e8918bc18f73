-- Changes of prices on their way to the accounts that they concern; all of one are one message to an account.
create table {schema}.notice_announcements (
  id uuid primary key default gen_random_uuid(),
  changes json not null,
  made_at timestamptz not null,
  -- The last account that was looked at.
  reached text not null default ''
);

-- Ratios as they were last seen: of plans, without an account, and of accounts that have one of their own.
create table {schema}.notice_ratios (
  account_id text collate "C" not null,
  plan text not null,
  ratio text not null,
  primary key (account_id, plan)
);

-- Whether ratios were looked at before: what is found first has not changed.
alter table {schema}.notice_look add column has_ratios boolean not null default false;
