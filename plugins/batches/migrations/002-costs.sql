-- The charge of each line, and of all lines of an ended batch, in nano-USD. Null: unknown.
alter table {schema}.batch_lines add column cost bigint;
alter table {schema}.batches add column cost bigint;
