-- Copies and memsets by direction, with their rate
SELECT
    job,
    kind,
    COUNT(*) AS calls,
    CAST(SUM(duration_ns) AS BIGINT) AS total_ns,
    CAST(SUM(bytes) AS BIGINT) AS bytes,
    CAST(SUM(bytes) AS DOUBLE) / NULLIF(CAST(SUM(CASE WHEN bytes IS NOT NULL THEN duration_ns END) AS DOUBLE), 0)
        AS gb_per_second
FROM copies
WHERE NOT set_aside
GROUP BY job, kind
ORDER BY job, total_ns DESC, kind
