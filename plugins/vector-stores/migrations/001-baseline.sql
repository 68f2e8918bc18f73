-- Vector stores of accounts: their files, cut into chunks with a vector each. Times are the database's.

create table {schema}.vector_stores (
  account_id text not null,
  id text not null,
  name text,
  description text,
  metadata json,
  -- What makes the vectors of all of its chunks and of each query.
  model text not null,
  dimensions integer,
  -- Null: it does not expire.
  expires_days integer,
  last_active_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  primary key (account_id, id)
);

create index vector_stores_of_account on {schema}.vector_stores (account_id, created_at, id);

create table {schema}.vector_store_batches (
  account_id text not null,
  store_id text not null,
  id text not null,
  cancelled boolean not null default false,
  created_at timestamptz not null default now(),
  primary key (account_id, id),
  foreign key (account_id, store_id) references {schema}.vector_stores (account_id, id) on delete cascade
);

create index vector_store_batches_of_store on {schema}.vector_store_batches (account_id, store_id, created_at, id);

create table {schema}.vector_store_files (
  account_id text not null,
  store_id text not null,
  -- One for each time that a file is put into a store: keys of its calls are made of it.
  id text not null,
  file_id text not null,
  name text not null,
  batch_id text,
  attributes json,
  chunk_tokens integer not null,
  overlap_tokens integer not null,
  -- Its key and its address are checked again for each call.
  key_id text not null,
  remote_address text not null,
  headers json not null,
  state text not null default 'in_progress' check (state in ('in_progress', 'completed', 'failed', 'cancelled')),
  error_code text,
  error_message text,
  chunks integer not null default 0,
  bytes bigint not null default 0,
  tries integer not null default 0,
  created_at timestamptz not null default now(),
  due_at timestamptz default now(),
  lease text,
  lease_until timestamptz,
  -- Workers have the id alone.
  primary key (id, account_id),
  unique (account_id, store_id, file_id),
  foreign key (account_id, store_id) references {schema}.vector_stores (account_id, id) on delete cascade
);

create index vector_store_files_due on {schema}.vector_store_files (due_at) where state = 'in_progress';
create index vector_store_files_of_file on {schema}.vector_store_files (account_id, file_id);
create index vector_store_files_of_batch on {schema}.vector_store_files (account_id, batch_id) where batch_id is not null;

create table {schema}.vector_chunks (
  account_id text not null,
  store_id text not null,
  file text not null,
  number integer not null,
  -- Its first so many characters end the chunk before it.
  overlap integer not null,
  text text not null,
  -- 32-bit floats, little-endian, of length 1.
  vector bytea not null,
  primary key (file, number, account_id),
  foreign key (account_id, file) references {schema}.vector_store_files (account_id, id) on delete cascade
);

create index vector_chunks_of_store on {schema}.vector_chunks (account_id, store_id, file, number);
