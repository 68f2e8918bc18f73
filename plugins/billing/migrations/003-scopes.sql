-- Shares of what keys and other scopes may spend in a period, one row for each process, so that together they never spend more. They are
-- kept over the end of a period: what calls hold then counts in the next one.
create table if not exists {schema}.scope_leases (
  account_id text not null,
  scope text not null,
  -- The process, by the name of its journal, and its run: the owner of that journal's cursor.
  node text not null,
  epoch text not null,
  -- What its journal may still charge beyond what the ledger has of it, and what of that calls held when the process told it last.
  amount bigint not null,
  open bigint not null check (open >= 0),
  -- The number of the request that wrote it: an earlier one of the same run changes nothing.
  asked bigint not null,
  -- By this database's clock. No other process is given an expired share: its node's journal may owe it.
  updated_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (account_id, scope, node)
) with (fillfactor = 70);
create index if not exists scope_leases_node on {schema}.scope_leases (node);
