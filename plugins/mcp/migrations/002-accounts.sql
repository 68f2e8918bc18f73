-- Connections are looked up by their account when it, or one of its members, ends.
create index if not exists mcp_connections_account on {schema}.mcp_connections (split_part(owner, ' ', 2));
