-- Which rank arrives last at the collectives, and how long the others wait for it
SELECT
    job,
    last_rank,
    COUNT(*) AS collectives,
    CAST(SUM(waited_ns) AS BIGINT) AS waited_ns,
    MAX(waited_ns) AS longest_ns
FROM (
    SELECT job, process_group, group_ranks, number,
        MIN(CASE WHEN place = 1 THEN rank END) AS last_rank,
        CAST(SUM(last_ns - start_ns) AS BIGINT) AS waited_ns,
        COUNT(*) AS ranks
    FROM (
        SELECT job, rank, process_group, group_ranks, number, start_ns,
            ROW_NUMBER() OVER (PARTITION BY job, process_group, group_ranks, number ORDER BY start_ns DESC, rank) AS place,
            MAX(start_ns) OVER (PARTITION BY job, process_group, group_ranks, number) AS last_ns
        FROM (
            SELECT job, rank, process_group, group_ranks, number, MIN(start_ns) AS start_ns
            FROM collectives
            WHERE rank IS NOT NULL
            GROUP BY job, rank, process_group, group_ranks, number
        ) AS calls
    ) AS arrivals
    GROUP BY job, process_group, group_ranks, number
) AS shared
WHERE ranks > 1
GROUP BY job, last_rank
ORDER BY job, waited_ns DESC, last_rank
