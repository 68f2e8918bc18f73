-- Batches of Google's clients, with lines that generate content.
alter table {schema}.batches drop constraint batches_dialect_check;
alter table {schema}.batches add constraint batches_dialect_check check (dialect in ('chat', 'messages', 'gemini'));
