-- The plan that a call was made on, as it was when the money was set aside; null: none, or written before this was kept.

alter table {schema}.usage add column plan text;
