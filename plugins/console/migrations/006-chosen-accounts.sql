-- The account that a person has chosen in a session; null: the one that was made for them.
alter table {schema}.console_sessions add column if not exists account_id text;
-- The account that a granted key is for; null: granted by an earlier version.
alter table {schema}.console_key_requests add column if not exists account_id text;
-- The account that a change was made in by one of its members.
alter table {schema}.console_audit add column if not exists account_id text;
create index if not exists console_audit_account on {schema}.console_audit (account_id, at desc, id desc) where account_id is not null;
