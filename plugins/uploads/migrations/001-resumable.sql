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
  expires_at timestamptz not null
);
create index resumable_uploads_expiry on {schema}.resumable_uploads (expires_at);
create index resumable_uploads_account on {schema}.resumable_uploads (account_id);
