-- Uploads that come in pieces, by the digest of their address.
create table {schema}.resumable_uploads (
  digest text primary key,
  account_id text not null,
  -- It is checked again for each piece.
  key_id text not null,
  -- Of the file that is made of the pieces.
  file_id text not null,
  name text not null,
  media_type text not null,
  -- As announced; null: they were not.
  bytes bigint,
  expires_at timestamptz not null,
  -- The name that the client has chosen for the file; null: none.
  chosen_name text
);
create index resumable_uploads_expiry on {schema}.resumable_uploads (expires_at);
create index resumable_uploads_account on {schema}.resumable_uploads (account_id);

-- Uploads in parts, as clients of OpenAI send them; the bytes of a part are a file of the store without a name.
create table {schema}.part_uploads (
  id text primary key,
  account_id text not null,
  -- Of the file that is made of the parts.
  file_id text not null,
  name text not null,
  purpose text not null,
  media_type text not null,
  -- As announced.
  bytes bigint not null,
  -- Of the file; null: as long as files may be kept.
  lifetime_ms bigint,
  status text not null default 'pending',
  created_at timestamptz not null
);
create index part_uploads_account on {schema}.part_uploads (account_id, created_at);
create index part_uploads_age on {schema}.part_uploads (created_at);
create table {schema}.upload_parts (
  id text primary key,
  upload_id text not null references {schema}.part_uploads (id) on delete cascade,
  bytes bigint not null
);
create index upload_parts_upload on {schema}.upload_parts (upload_id);
