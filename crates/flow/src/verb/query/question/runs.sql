-- Contents of these folders: jobs, ranks, devices, sources
SELECT job, rank, world_size, kind, model, device_name, devices, format, clock, last_ns - first_ns AS span_ns, lost_records
FROM runs
ORDER BY job, rank NULLS LAST
