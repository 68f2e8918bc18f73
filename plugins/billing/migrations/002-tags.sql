-- What calls are for: each tag of a call that has any, and sums by tag. Calls without tags have no row here.
create table {schema}.call_tags (
  account_id text not null,
  -- NAME=VALUE.
  tag text collate "C" not null,
  -- The call.
  id uuid not null,
  primary key (account_id, tag, id)
);
-- The tags of a call; and their removal with the facts of its request.
create index call_tags_id on {schema}.call_tags (id);

-- By quarters of an hour, since the days of every time zone consist of these. The measures are those of call_sums.
create table {schema}.tag_sums (
  account_id text not null,
  -- NAME=VALUE. Of an hour with many of them, further ones are NAME=* together.
  tag text collate "C" not null,
  at timestamptz not null,
  key_id text not null,
  model text not null,
  charged bigint,
  cost bigint,
  own_cost bigint,
  own_unknown bigint,
  absorbed bigint,
  uncosted bigint,
  "input" bigint,
  "cache_read" bigint,
  "cache_write_5m" bigint,
  "cache_write_1h" bigint,
  "input_audio" bigint,
  "input_image" bigint,
  "cache_read_audio" bigint,
  "cache_read_image" bigint,
  "output" bigint,
  "reasoning" bigint,
  "output_audio" bigint,
  "output_image" bigint,
  "image" bigint,
  "second" bigint,
  "request" bigint,
  "call" bigint,
  "web_search" bigint,
  "web_fetch" bigint,
  "code_execution" bigint,
  "file_search" bigint,
  "search" bigint,
  "character" bigint,
  "audio" bigint,
  primary key (account_id, tag, at, key_id, model)
) with (fillfactor = 90);
-- How many tags an account has in an hour.
create index tag_sums_at on {schema}.tag_sums (account_id, at);
