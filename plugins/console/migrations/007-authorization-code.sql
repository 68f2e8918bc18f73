-- Programs that lead the person's browser here (authorization code, RFC 6749): where it goes back to, and by what the program proves that it is the same.
alter table {schema}.console_key_requests add column if not exists client_id text;
alter table {schema}.console_key_requests add column if not exists redirect_uri text;
-- SHA-256 of what the program keeps for itself (RFC 7636).
alter table {schema}.console_key_requests add column if not exists challenge text;
-- The program's own note, given back to it.
alter table {schema}.console_key_requests add column if not exists client_state text;
