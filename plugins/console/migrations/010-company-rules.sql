-- Whether people of the account's domains sign in by its provider alone.
alter table {schema}.console_company_providers add column if not exists required boolean not null default false;
-- When DNS was asked for the record of a verified domain, and since when it has said that there is none.
alter table {schema}.console_company_domains add column if not exists checked_at timestamptz;
alter table {schema}.console_company_domains add column if not exists missing_since timestamptz;
