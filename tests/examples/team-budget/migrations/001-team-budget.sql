-- What the calls of a team have cost in a month (UTC), in nano-USD.
create table {schema}.team_months (
  account_id text not null,
  team text not null,
  month text not null,
  spent bigint not null default 0,
  primary key (account_id, team, month)
);

-- What running calls may come to cost.
create table {schema}.team_holds (
  request_id text primary key,
  account_id text not null,
  team text not null,
  month text not null,
  amount bigint not null,
  -- A machine that never comes back does not release: its holds count no longer than this.
  ends_at timestamptz not null
);
create index team_holds_team on {schema}.team_holds (account_id, team, month);
