-- Kernels that take the most device time, over all ranks
SELECT
    short_name,
    family,
    COUNT(*) AS calls,
    CAST(SUM(duration_ns) AS BIGINT) AS total_ns,
    CAST(SUM(duration_ns) AS DOUBLE) / NULLIF(CAST(SUM(SUM(duration_ns)) OVER () AS DOUBLE), 0) AS share,
    CAST(SUM(duration_ns) AS DOUBLE) / COUNT(*) AS mean_ns,
    MIN(duration_ns) AS min_ns,
    MAX(duration_ns) AS max_ns
FROM kernels
WHERE NOT set_aside
GROUP BY short_name, family
ORDER BY total_ns DESC, short_name
LIMIT 25
