-- Peak memory of each device, as counted by the framework's allocator
SELECT job, rank, device, MAX(allocated) AS allocated_bytes, MAX(reserved) AS reserved_bytes, COUNT(*) AS events
FROM memory
WHERE allocated IS NOT NULL OR reserved IS NOT NULL
GROUP BY job, rank, device
ORDER BY job, rank NULLS LAST, device NULLS LAST
