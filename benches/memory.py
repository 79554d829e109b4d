#!/usr/bin/env python3
"""What an import with tables takes: processor time, memory, and room on the disk for what spills.

    python3 benches/memory.py PROGRAM TRACE [--memory SIZE] [--limit BYTES] [--work DIR]

Make a trace with `benches/make_kineto.py` or `make-fleet` first. Memory is looked at fifty times a second: `anonymous` is what only memory
can hold, `resident` also counts pages of mapped files (the trace, and rows that spilled), which are the system's cache. With `--limit` the import
runs in a control group of that many bytes, in which cache counts too (cgroup version 1, as root).
"""
import argparse
import os
import subprocess
import tempfile
import time

GROUPS = "/sys/fs/cgroup/memory"


def limited(limit):
    """A control group below our own."""
    with open("/proc/self/cgroup") as lines:
        own = next(line.strip().split(":", 2)[2] for line in lines if line.split(":")[1] == "memory")
    folder = os.path.join(GROUPS, own.lstrip("/"), "llm-perf-bench-%d" % os.getpid())
    os.mkdir(folder)
    with open(os.path.join(folder, "memory.limit_in_bytes"), "w") as file:
        file.write(str(limit))
    return folder


def look(process, peaks):
    with open("/proc/%d/status" % process) as lines:
        found = dict(line.split(":", 1) for line in lines)
    for key, name in (("RssAnon", "anonymous"), ("VmRSS", "resident")):
        peaks[name] = max(peaks[name], int(found[key].split()[0]) * 1024)
    spilled = 0
    for number in os.listdir("/proc/%d/fd" % process):
        file = "/proc/%d/fd/%s" % (process, number)
        if os.readlink(file).endswith(" (deleted)"):
            spilled += os.stat(file).st_blocks * 512
    peaks["spilled"] = max(peaks["spilled"], spilled)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("trace")
    parser.add_argument("--memory", help="of the import")
    parser.add_argument("--limit", type=int, help="bytes of the control group")
    parser.add_argument("--work", help="folder for the run and its tables; temporary unless given")
    arguments = parser.parse_args()
    group = limited(arguments.limit) if arguments.limit else None
    with tempfile.TemporaryDirectory(dir=arguments.work) as work:
        command = [arguments.program, "import", arguments.trace, "--tables", os.path.join(work, "tables"),
                   "--out", os.path.join(work, "run")]
        command += ["--memory", arguments.memory] if arguments.memory else []

        def enter():
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(os.getpid()))

        began, peaks = time.time(), {"anonymous": 0, "resident": 0, "spilled": 0}
        environment = dict(os.environ, LLM_PERF_DATA_DIR=os.path.join(work, "data"))
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
                                   preexec_fn=enter if group else None)
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            try:
                look(process.pid, peaks)
            except (OSError, KeyError):
                pass  # It has just ended, or closed a file.
            time.sleep(0.02)
    size = os.path.getsize(arguments.trace)
    print("%s: %.2f GB, exit status %d, %.0f s, user %.0f s, system %.0f s" %
          (arguments.trace, size / 1e9, os.waitstatus_to_exitcode(status), time.time() - began, usage.ru_utime, usage.ru_stime))
    print(", ".join("%s %.0f MB" % (name, peak / 1e6) for name, peak in peaks.items()))
    if group:
        with open(os.path.join(group, "memory.max_usage_in_bytes")) as most:
            print("control group: at most %.0f MB" % (int(most.read()) / 1e6))
        os.rmdir(group)


if __name__ == "__main__":
    main()
