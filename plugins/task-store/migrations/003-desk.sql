-- For lists of everybody's tasks, newest first.
create index tasks_at on {schema}.tasks (created_at desc, id desc);
