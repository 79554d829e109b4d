-- Ranks that compute longer than the others and make them wait in collectives
SELECT
    job,
    rank,
    device,
    compute_ns,
    CAST(compute_ns AS DOUBLE) / NULLIF(median_compute_ns, 0) AS compute_of_median,
    communication_exposed_ns,
    idle_ns,
    span_ns
FROM (
    SELECT job, rank, device, compute_ns, communication_exposed_ns, idle_ns, span_ns, median_compute_ns
    FROM device_time
    JOIN (
        SELECT job AS median_job, MEDIAN(CAST(compute_ns AS DOUBLE)) AS median_compute_ns FROM device_time GROUP BY job
    ) AS medians ON job = median_job
) AS held
ORDER BY job, compute_of_median DESC NULLS LAST, rank NULLS LAST, device
