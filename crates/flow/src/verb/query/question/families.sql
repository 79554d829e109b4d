-- Kernel time by family: GEMM, attention, elementwise, communication
SELECT
    job,
    family,
    COUNT(*) AS calls,
    CAST(SUM(duration_ns) AS BIGINT) AS total_ns,
    CAST(SUM(duration_ns) AS DOUBLE) / NULLIF(CAST(SUM(SUM(duration_ns)) OVER (PARTITION BY job) AS DOUBLE), 0) AS share
FROM kernels
WHERE NOT set_aside
GROUP BY job, family
ORDER BY job, total_ns DESC, family
