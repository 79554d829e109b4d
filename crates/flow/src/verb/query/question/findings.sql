-- Findings over all ranks: how many ranks have each, and the estimated saving
SELECT
    job,
    rule,
    stage,
    COUNT(*) AS ranks,
    CAST(SUM(saves_ns) AS BIGINT) AS saves_ns,
    MIN(advice) AS advice
FROM findings
GROUP BY job, rule, stage
ORDER BY job, saves_ns DESC NULLS LAST, rule, stage NULLS LAST
