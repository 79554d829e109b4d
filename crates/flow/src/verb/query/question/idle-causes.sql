-- Idle time of devices, by host activity
SELECT
    job,
    cause,
    CAST(SUM(ns) AS BIGINT) AS total_ns,
    CAST(SUM(ns) AS DOUBLE) / NULLIF(CAST(SUM(SUM(ns)) OVER (PARTITION BY job) AS DOUBLE), 0) AS share,
    MAX(longest_ns) AS longest_ns,
    COUNT(*) AS devices
FROM idle
GROUP BY job, cause
ORDER BY job, total_ns DESC, cause
