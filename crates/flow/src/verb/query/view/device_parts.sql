-- Breakdown of the span of each device, from its intervals: compute, communication without compute, copies without either, idle.
SELECT
    job,
    rank,
    device,
    MAX(end_ns) - MIN(start_ns) AS span_ns,
    CAST(SUM(busy_ns) AS BIGINT) AS busy_ns,
    MAX(end_ns) - MIN(start_ns) - CAST(SUM(busy_ns) AS BIGINT) AS idle_ns,
    CAST(SUM(compute_ns) AS BIGINT) AS compute_ns,
    CAST(SUM(communication_ns) AS BIGINT) AS communication_busy_ns,
    CAST(SUM(kernels_ns) - SUM(compute_ns) AS BIGINT) AS communication_exposed_ns,
    CAST(SUM(busy_ns) - SUM(kernels_ns) AS BIGINT) AS copies_exposed_ns
FROM (
    SELECT job, rank, device, start_ns, end_ns,
        -- What each piece of work adds to the union of those that started before it.
        GREATEST(end_ns - GREATEST(start_ns, COALESCE(busy_until, start_ns)), 0) AS busy_ns,
        CASE WHEN part <> 'copy'
            THEN GREATEST(end_ns - GREATEST(start_ns, COALESCE(kernels_until, start_ns)), 0) ELSE 0 END AS kernels_ns,
        CASE WHEN part = 'compute'
            THEN GREATEST(end_ns - GREATEST(start_ns, COALESCE(compute_until, start_ns)), 0) ELSE 0 END AS compute_ns,
        CASE WHEN part = 'communication'
            THEN GREATEST(end_ns - GREATEST(start_ns, COALESCE(communication_until, start_ns)), 0) ELSE 0 END
            AS communication_ns
    FROM (
        SELECT job, rank, device, part, start_ns, end_ns,
            MAX(end_ns) OVER (
                PARTITION BY job, rank, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS busy_until,
            MAX(CASE WHEN part <> 'copy' THEN end_ns END) OVER (
                PARTITION BY job, rank, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS kernels_until,
            MAX(CASE WHEN part = 'compute' THEN end_ns END) OVER (
                PARTITION BY job, rank, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS compute_until,
            MAX(CASE WHEN part = 'communication' THEN end_ns END) OVER (
                PARTITION BY job, rank, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS communication_until
        FROM device_work
    ) AS ordered
) AS added
GROUP BY job, rank, device
