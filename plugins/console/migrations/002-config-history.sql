-- Applied configurations: what ran, since when, and who made it so. Texts are sealed, since a file may have secrets written out.

create table {schema}.console_config_texts (
  -- SHA-256 of the text.
  digest text primary key,
  sealed text not null,
  bytes integer not null
);

create table {schema}.console_config_versions (
  version integer primary key,
  at timestamptz not null,
  -- SHA-256 over paths and texts.
  digest text not null,
  source text not null,
  actor text,
  reason text,
  audit_id text,
  node text not null,
  -- Path, digest and bytes of each file, as JSON.
  files text not null
);

-- The version that each node applied last.
create table {schema}.console_config_nodes (
  node text primary key,
  version integer not null,
  at timestamptz not null
);
