-- Kernels, copies and memsets of each device, in the window of the measured work: loading and warm-up do not extend it.
WITH windows AS (
    SELECT job, rank, device, MIN(start_ns) AS first_ns, MAX(end_ns) AS last_ns
    FROM (
        SELECT job, rank, device, start_ns, start_ns + duration_ns AS end_ns FROM kernels WHERE NOT set_aside
        UNION ALL
        SELECT job, rank, device, start_ns, start_ns + duration_ns AS end_ns FROM copies WHERE NOT set_aside
    ) AS meant
    GROUP BY job, rank, device
)
SELECT
    work.job,
    work.rank,
    work.device,
    work.stream,
    work.part,
    GREATEST(work.start_ns, windows.first_ns) AS start_ns,
    LEAST(work.start_ns + work.duration_ns, windows.last_ns) AS end_ns
FROM (
    SELECT job, rank, device, stream, start_ns, duration_ns,
        CASE WHEN family = 'communication' THEN 'communication' ELSE 'compute' END AS part
    FROM kernels
    UNION ALL
    SELECT job, rank, device, stream, start_ns, duration_ns, 'copy' AS part FROM copies
) AS work
JOIN windows
    ON work.job = windows.job
    AND COALESCE(work.rank, -1) = COALESCE(windows.rank, -1)
    AND work.device = windows.device
WHERE work.start_ns < windows.last_ns AND work.start_ns + work.duration_ns > windows.first_ns AND work.duration_ns > 0
