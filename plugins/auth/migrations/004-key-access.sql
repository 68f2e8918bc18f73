-- What a key is for beside calls. `organization`: it administers its account, and calls nothing; null: calls. To an earlier version that serves
-- beside this one it is a key for calls of its account.
alter table {schema}.keys add column access text;
