-- Tokens of the finished lines, as OpenAI tells them; null: of batches that ended before they were summed up.
alter table {schema}.batches add column usage text;
