-- Accounts of people and of gateway accounts at servers of tools, connected by OAuth, with their tokens sealed; and browsers that are on their way to connect one.

create table {schema}.mcp_connections (
  server text not null,
  -- An account, or a person in an account.
  owner text not null,
  -- Tokens, and where and as what others are asked for; null: the server takes them no more.
  sealed text,
  -- Grows with each change of the tokens.
  version bigint not null,
  -- Until then one process asks for other tokens.
  renewing_until timestamptz,
  connected_at timestamptz not null,
  primary key (server, owner)
);

create table {schema}.mcp_visits (
  -- SHA-256 of what comes back with the browser.
  state_hash text primary key,
  server text not null,
  owner text not null,
  -- Who began, and alone may end it.
  person text not null,
  sealed text not null,
  expires_at timestamptz not null
);

create index mcp_visits_expires_at on {schema}.mcp_visits (expires_at);
create index mcp_visits_owner on {schema}.mcp_visits (owner);
