-- Exposed communication, by rank and device
SELECT job, rank, device, communication_busy_ns, exposed_ns, hidden_ns, exposed_share
FROM exposed_communication
ORDER BY exposed_ns DESC, job, rank NULLS LAST, device
