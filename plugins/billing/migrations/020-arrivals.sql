-- Rows of a span are found by their ids, which are in the order of arrival, and those of long calls by an index of their own. An index of
-- ranges of `created_at` was good only as long as rows lay in the order of their times: rows from which the request log's retention has
-- removed its columns are written anew, and new calls take the room that these had.

-- When a request arrived, by its id; of an id of another kind some time that no call has.
create function {schema}.arrival_of(id uuid) returns timestamptz language sql immutable parallel safe as $body$
  select to_timestamp(least(('x' || left(id::text, 8) || substr(id::text, 10, 4))::bit(48)::bigint::float8 / 1000, 100000000000::float8))
$body$;

-- Those that did not end within five minutes after their arrival.
create index calls_long on {schema}.calls (created_at)
  where abs(date_part('epoch', created_at - {schema}.arrival_of(id)) - 150) > 150;
-- Last, since nothing reads calls from here to the end of the transaction.
drop index {schema}.calls_at;
