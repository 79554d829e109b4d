-- Kernels whose median on one device is over 1.1 times that of the median device: clocks, heat, other jobs
SELECT job, short_name, rank, device, calls, median_ns, typical_ns, median_ns / NULLIF(typical_ns, 0) AS ratio, total_ns
FROM (
    SELECT one.job, one.rank, one.device, one.name, one.short_name, one.calls, one.median_ns, one.total_ns, every.typical_ns
    FROM kernel_sums AS one
    JOIN (
        SELECT job, name, MEDIAN(CAST(median_ns AS DOUBLE)) AS typical_ns
        FROM kernel_sums
        WHERE family <> 'communication'
        GROUP BY job, name
        HAVING COUNT(*) > 1
    ) AS every ON one.job = every.job AND one.name = every.name
) AS beside
WHERE median_ns > 1.1E0 * typical_ns
ORDER BY (median_ns - typical_ns) * calls DESC, job, name, rank NULLS LAST, device
LIMIT 50
