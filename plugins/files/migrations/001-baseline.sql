-- Files that were made for accounts, or that clients upload. The bytes lie in the store under the id; a row stands before its bytes and
-- outlives them.

create table {schema}.files (
  id text not null,
  account_id text not null,
  task_id text not null,
  -- Which of the task's files it is.
  number integer not null,
  -- writing: the bytes are on their way. kept: they are there. gone: nobody may have them, and they are being deleted.
  state text not null check (state in ('writing', 'kept', 'gone')),
  media_type text not null,
  bytes bigint not null check (bytes >= 0),
  created_at timestamptz not null,
  -- When a sweep takes it: a kept one has expired then, a written one was given up, a gone one was not deleted by who took it.
  sweep_at timestamptz not null,
  -- Of files that clients upload, or that batches make for them; those of tasks have neither.
  name text,
  purpose text,
  -- The name that a client has chosen, of one file of the account at a time.
  chosen_name text,
  -- Of the bytes of an uploaded file, in hexadecimal digits.
  sha256 text,
  -- The address of a file has its id alone.
  primary key (id, account_id)
);
create unique index files_of_task on {schema}.files (account_id, task_id, number) where state <> 'gone';
create unique index files_chosen on {schema}.files (account_id, chosen_name) where chosen_name is not null and state <> 'gone';
create index files_to_sweep on {schema}.files (sweep_at);
create index files_uploaded on {schema}.files (account_id, created_at, id) where purpose is not null and state = 'kept';
-- Uploaded files of all accounts, newest first, for operators: any, and those of one purpose.
create index files_newest on {schema}.files (created_at, id) where purpose is not null and state = 'kept';
create index files_by_purpose on {schema}.files (purpose, created_at, id) where purpose is not null and state = 'kept';
-- Rows of other plugins, which count as bytes.
create index files_spaces on {schema}.files (id) where id like 'space-%';

-- What lies in the store, by account. Deleted rows count until their bytes are gone.
create table {schema}.file_usage (
  account_id text primary key,
  bytes bigint not null,
  -- Whether the account has paid money in, as it was found last: those that have not share a part of the space.
  paid boolean not null default false
);

create function {schema}.count_files() returns trigger language plpgsql as $body$
begin
  if tg_op = 'INSERT' then
    insert into {schema}.file_usage as u (account_id, bytes) values (new.account_id, new.bytes)
      on conflict (account_id) do update set bytes = u.bytes + excluded.bytes;
  else
    update {schema}.file_usage set bytes = bytes - old.bytes where account_id = old.account_id;
  end if;
  return null;
end
$body$;

create trigger counted after insert or delete on {schema}.files
  for each row execute function {schema}.count_files();

create table {schema}.file_settings (
  name text primary key,
  value text not null
);
