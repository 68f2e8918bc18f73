-- Of the bytes of an uploaded file, in hexadecimal digits; null: kept before digests were.
alter table {schema}.files add column sha256 text;
