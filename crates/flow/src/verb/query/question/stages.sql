-- Time of each stage by rank
SELECT job, rank, stage, COUNT(*) AS instances, CAST(SUM(wall_ns) AS BIGINT) AS wall_ns
FROM stages
GROUP BY job, rank, stage
ORDER BY job, rank NULLS LAST, wall_ns DESC, stage
