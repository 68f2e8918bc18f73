-- Uploads that come in pieces, by the digest of their address.
create table {schema}.resumable_uploads (
  digest text not null,
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
  chosen_name text,
  -- The address says nothing of the account.
  primary key (digest, account_id)
);
create index resumable_uploads_expiry on {schema}.resumable_uploads (expires_at);
create index resumable_uploads_account on {schema}.resumable_uploads (account_id);

-- Uploads in parts, as clients of OpenAI send them; the bytes of a part are a file of the store without a name.
create table {schema}.part_uploads (
  id text not null,
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
  created_at timestamptz not null,
  primary key (account_id, id)
);
create index part_uploads_account on {schema}.part_uploads (account_id, created_at);
create index part_uploads_age on {schema}.part_uploads (created_at);
create table {schema}.upload_parts (
  id text not null,
  account_id text not null,
  upload_id text not null,
  bytes bigint not null,
  primary key (account_id, upload_id, id),
  foreign key (account_id, upload_id) references {schema}.part_uploads (account_id, id) on delete cascade
);
