"""Makes a copy of vLLM log what its scheduler decides (`STEPS=FILE`), and delay it (`SLOW_MS=2`): what a join is checked against.

    python3 serving_scheduler.py FOLDER_WITH_VLLM
"""

import sys
from pathlib import Path

ADDED = '''

# What the join of requests and steps is checked against.
import json as _json, os as _os, time as _time

if _os.environ.get("STEPS") or _os.environ.get("SLOW_MS"):
    _schedule = Scheduler.schedule
    _slow = float(_os.environ.get("SLOW_MS", "0")) / 1e3
    _steps = open(_os.environ["STEPS"], "a", buffering=1) if _os.environ.get("STEPS") else None

    def _logged(self, *arguments, **named):
        wall, monotonic = _time.time_ns(), _time.monotonic_ns()
        output = _schedule(self, *arguments, **named)
        if output.num_scheduled_tokens:
            _time.sleep(_slow)
            if _steps is not None:
                step = {"wall_ns": wall, "mono_ns": monotonic, "tokens": dict(output.num_scheduled_tokens),
                        "preempted": sorted(output.preempted_req_ids or ()), "waiting": len(self.waiting),
                        "running": len(self.running)}
                _steps.write(_json.dumps(step) + "\\n")
        return output

    Scheduler.schedule = _logged
'''

path = Path(sys.argv[1]) / "vllm/v1/core/sched/scheduler.py"
text = path.read_text()
if "_logged" not in text:
    path.write_text(text + ADDED)
