-- Modules of the model by time lost relative to their roofline time
SELECT
    job,
    module,
    class,
    stage,
    COUNT(*) AS ranks,
    CAST(SUM(measured_ns) AS BIGINT) AS measured_ns,
    CAST(SUM(roofline_ns) AS BIGINT) AS roofline_ns,
    CAST(SUM(lost_ns) AS BIGINT) AS lost_ns
FROM modules
GROUP BY job, module, class, stage
ORDER BY lost_ns DESC NULLS LAST, measured_ns DESC NULLS LAST, job, module, stage
LIMIT 50
