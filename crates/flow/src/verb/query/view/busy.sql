-- Busy time of a device: the union of its work, as disjoint intervals.
SELECT job, rank, device, MIN(start_ns) AS start_ns, MAX(end_ns) AS end_ns, MAX(end_ns) - MIN(start_ns) AS duration_ns
FROM (
    SELECT job, rank, device, start_ns, end_ns,
        SUM(CASE WHEN start_ns <= until_ns THEN 0 ELSE 1 END) OVER (
            PARTITION BY job, rank, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS island
    FROM (
        SELECT job, rank, device, start_ns, end_ns,
            MAX(end_ns) OVER (
                PARTITION BY job, rank, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS until_ns
        FROM device_work
    ) AS ordered
) AS numbered
GROUP BY job, rank, device, island
