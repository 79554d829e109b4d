-- Collectives by name, message and group, with the bus bandwidth (nccl-tests) of all calls and of the shortest
SELECT
    job,
    name,
    dtype,
    bytes,
    process_group,
    group_size,
    COUNT(*) AS calls,
    CAST(SUM(duration_ns) AS BIGINT) AS total_ns,
    CAST(SUM(exposed_ns) AS BIGINT) AS exposed_ns,
    MIN(duration_ns) AS min_ns,
    crossing * bytes * COUNT(*) / NULLIF(CAST(SUM(duration_ns) AS DOUBLE), 0) AS bus_gb_per_second,
    crossing * bytes / NULLIF(CAST(MIN(duration_ns) AS DOUBLE), 0) AS best_bus_gb_per_second
FROM (
    SELECT job, name, dtype, bytes, process_group, group_size, duration_ns, exposed_ns,
        -- The share of the message that crosses the links of one rank.
        CASE
            WHEN group_size < 2 THEN NULL
            WHEN LTRIM(name, '_') LIKE 'allreduce%' OR LTRIM(name, '_') LIKE 'all\_reduce%' ESCAPE '\'
                THEN 2.0E0 * (group_size - 1) / CAST(group_size AS DOUBLE)
            WHEN LTRIM(name, '_') LIKE 'allgather%' OR LTRIM(name, '_') LIKE 'all\_gather%' ESCAPE '\'
                OR LTRIM(name, '_') LIKE 'reduce\_scatter%' ESCAPE '\'
                OR LTRIM(name, '_') LIKE 'all\_to\_all%' ESCAPE '\' OR LTRIM(name, '_') LIKE 'alltoall%'
                THEN 1.0E0 * (group_size - 1) / CAST(group_size AS DOUBLE)
            WHEN LTRIM(name, '_') LIKE 'broadcast%' OR LTRIM(name, '_') LIKE 'reduce%'
                OR LTRIM(name, '_') LIKE 'send%' OR LTRIM(name, '_') LIKE 'recv%' THEN 1.0E0
        END AS crossing
    FROM collectives
) AS called
GROUP BY job, name, dtype, bytes, process_group, group_size, crossing
ORDER BY job, total_ns DESC, name, bytes NULLS LAST, dtype NULLS LAST, process_group NULLS LAST
