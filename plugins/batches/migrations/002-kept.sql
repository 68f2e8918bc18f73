-- What a plugin needs again for the answer of a line that a vendor's batch makes, sealed by it.
alter table {schema}.batch_lines add column if not exists kept text;
