-- Idle time of a device between its first and its last work, as intervals.
SELECT job, rank, device, until_ns AS start_ns, start_ns AS end_ns, start_ns - until_ns AS duration_ns
FROM (
    SELECT job, rank, device, start_ns,
        MAX(end_ns) OVER (
            PARTITION BY job, rank, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS until_ns
    FROM device_work
) AS ordered
WHERE start_ns > until_ns
