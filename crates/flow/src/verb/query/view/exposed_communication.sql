-- Exposed communication of each device: time in which collectives ran and no other kernel did.
SELECT
    job,
    rank,
    device,
    communication_busy_ns,
    communication_exposed_ns AS exposed_ns,
    communication_busy_ns - communication_exposed_ns AS hidden_ns,
    CAST(communication_exposed_ns AS DOUBLE) / NULLIF(span_ns, 0) AS exposed_share
FROM device_parts
