-- How orders of images are answered where the request does not say it: wait = with the images; null = with the task.
alter table {schema}.keys add column images text;
