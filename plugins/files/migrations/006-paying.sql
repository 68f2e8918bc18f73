-- Whether the account has paid money in, as it was found last: those that have not share a part of the space.
alter table {schema}.file_usage add column paid boolean not null default false;
-- Rows of other plugins, which count as bytes.
create index files_spaces on {schema}.files (id) where id like 'space-%';
