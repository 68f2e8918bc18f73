-- Uploaded files of all accounts, newest first, for operators: any, and those of one purpose.
create index files_newest on {schema}.files (created_at, id) where purpose is not null and state = 'kept';
create index files_by_purpose on {schema}.files (purpose, created_at, id) where purpose is not null and state = 'kept';
