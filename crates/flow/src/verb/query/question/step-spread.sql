-- Steps that take longer than others of their job, and the slowest rank in each
SELECT
    job,
    step,
    COUNT(*) AS ranks,
    MIN(wall_ns) AS min_wall_ns,
    MEDIAN(CAST(wall_ns AS DOUBLE)) AS median_wall_ns,
    MAX(wall_ns) AS max_wall_ns,
    MIN(CASE WHEN place = 1 THEN rank END) AS slowest_rank
FROM (
    SELECT job, rank, step, wall_ns,
        ROW_NUMBER() OVER (PARTITION BY job, step ORDER BY wall_ns DESC, rank NULLS LAST) AS place
    FROM steps
) AS placed
GROUP BY job, step
ORDER BY job, max_wall_ns DESC, step
LIMIT 50
