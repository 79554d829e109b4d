-- Breakdown of each device's time: compute, exposed communication, exposed copies, idle
SELECT
    job,
    rank,
    device,
    span_ns,
    busy_ns,
    idle_ns,
    compute_ns,
    communication_exposed_ns,
    copies_exposed_ns,
    CAST(busy_ns AS DOUBLE) / NULLIF(span_ns, 0) AS busy_share
FROM device_parts
ORDER BY job, rank NULLS LAST, device
