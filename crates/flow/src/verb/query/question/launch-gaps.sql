-- Gaps between kernels, copies and memsets: count, duration, and how much is short enough to be launch overhead
SELECT
    job,
    rank,
    device,
    COUNT(*) AS gaps,
    CAST(SUM(duration_ns) AS BIGINT) AS total_ns,
    MEDIAN(CAST(duration_ns AS DOUBLE)) AS median_ns,
    MAX(duration_ns) AS longest_ns,
    CAST(SUM(CASE WHEN duration_ns < 20000 THEN duration_ns ELSE 0 END) AS BIGINT) AS below_20us_ns
FROM gaps
GROUP BY job, rank, device
ORDER BY job, total_ns DESC, rank NULLS LAST, device
