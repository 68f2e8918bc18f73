-- Cached audio and images of realtime sessions are priced on their own.
alter table {schema}.call_sums
  add column "cache_read_audio" bigint,
  add column "cache_read_image" bigint;
