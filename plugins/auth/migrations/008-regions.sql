-- Regions in which calls of a key, and of the keys of a project, may be processed; null: anywhere. To an earlier version that serves beside this one
-- they are in force nowhere.
alter table {schema}.keys add column regions text[];
alter table {schema}.projects add column regions text[];
