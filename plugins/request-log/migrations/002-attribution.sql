-- Requests keep the person and the project that they were for, whatever becomes of their keys, and are summed up by them. Null, and in sums
-- an empty text: neither, or not known, as of all rows that there are and of those that an earlier version writes.
alter table {schema}.requests add column if not exists person text, add column if not exists project text;
alter table {schema}.request_sums_groups add column if not exists person text not null default '',
  add column if not exists project text not null default '';
-- Pages ask for the groups of a project, of all accounts too.
create index if not exists request_sums_groups_project on {schema}.request_sums_groups (project);
