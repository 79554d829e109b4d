-- Compute and communication at the same time, for each device.
SELECT
    job,
    rank,
    device,
    compute_ns,
    communication_busy_ns,
    communication_busy_ns - communication_exposed_ns AS overlap_ns,
    CAST(communication_busy_ns - communication_exposed_ns AS DOUBLE) / NULLIF(communication_busy_ns, 0) AS overlap_share
FROM device_parts
