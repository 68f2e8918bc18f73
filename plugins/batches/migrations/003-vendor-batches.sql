-- Batches that a vendor's own batch API makes, and their lines, for each of which money is set aside.

-- placed: money is set aside for it, and it belongs to the vendor's batch; `request_id` names its authorization.
alter table {schema}.batch_lines drop constraint batch_lines_state_check;
alter table {schema}.batch_lines add constraint batch_lines_state_check check (state in ('waiting', 'placed', 'running', 'done'));
-- What is set aside for it, in nano-USD, and the request as the vendor is to get it.
alter table {schema}.batch_lines add column held bigint;
alter table {schema}.batch_lines add column request text;

create table {schema}.vendor_batches (
  batch_id text primary key references {schema}.batches on delete cascade,
  provider text not null,
  protocol text not null,
  -- The vendor's name of the model, and the client's.
  model text not null,
  asked text not null,
  credential text,
  -- preparing: lines are placed. uploading, ordering: due, or sent perhaps (`sent_at`). running: the vendor has it.
  -- reading: the vendor has ended it, and its results are read. ended: nothing of it is open.
  state text not null check (state in ('preparing', 'uploading', 'ordering', 'running', 'reading', 'ended')),
  sent_at timestamptz,
  -- When the order was accepted.
  ordered_at timestamptz,
  lines integer not null default 0,
  file_id text,
  vendor_id text,
  cancel_sent boolean not null default false,
  -- How the vendor ended it, and where its results are.
  results json
);

create index vendor_batches_by_vendor on {schema}.vendor_batches (vendor_id);
