-- Step times of each rank: median, shortest, longest, and device busy time
SELECT
    job,
    rank,
    COUNT(*) AS steps,
    MEDIAN(CAST(wall_ns AS DOUBLE)) AS median_wall_ns,
    MIN(wall_ns) AS min_wall_ns,
    MAX(wall_ns) AS max_wall_ns,
    MEDIAN(CAST(device_ns AS DOUBLE)) AS median_device_ns,
    CAST(SUM(device_ns) AS DOUBLE) / NULLIF(CAST(SUM(wall_ns) AS DOUBLE), 0) AS device_share
FROM steps
GROUP BY job, rank
ORDER BY job, median_wall_ns DESC, rank NULLS LAST
