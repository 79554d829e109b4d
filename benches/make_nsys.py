#!/usr/bin/env python3
"""Makes a large SQLite export as nsys 2025.3 writes it: `make_nsys.py OUT.sqlite [--megabytes 830]`.

Two processes with one device each run a decoder step by step. Every step is a tree of NVTX ranges (step, layer, module,
operators; half of the texts registered) with kernel launches inside; 830 MB hold 1.45 million kernels, 7 million ranges and
3.2 million calls. Tables grow side by side, as in a real export. The same size gives the same bytes for one SQLite version.

With `--bare` there is no range, as in a recording of a program without NVTX: 640 MB hold 4 million kernels and 8 million calls.
"""

import argparse
import os
import sqlite3

LAYERS, MODULES, KERNELS = 24, 10, 5
KERNELS_PER_STEP = LAYERS * MODULES * KERNELS
BYTES_PER_STEP, BYTES_PER_BARE_STEP = 686_000, 191_500
BATCH = 8
# What torch writes behind an operator's name when it records shapes.
SIZES = ", sizes = [[1, 286, 1280], [1280, 3420], [3420], [1, 286, 3420]]"

SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL,
    stopTime INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
    category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER,
    uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL,
    jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
    registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
    blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
    dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
    gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER,
    srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER,
    graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER,
    l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, pwGpuId INTEGER,
    uuid TEXT, luid INTEGER, chipName TEXT, cuDevice INTEGER, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
"""


class Texts:
    """Numbers of texts, handed out as they come."""

    def __init__(self):
        self.numbers = {}

    def __getitem__(self, text):
        return self.numbers.setdefault(text, len(self.numbers))


class Process:
    """One process, its clock, its device, and the rows it has not handed over yet."""

    def __init__(self, pid, texts):
        self.pid, self.tid = 1 << 48 | pid << 24, 1 << 48 | pid << 24 | pid
        self.texts = texts
        self.host, self.device, self.correlation = 1_000_000_000, 0, 1000
        self.state = pid
        self.ranges, self.calls, self.kernels, self.copies = [], [], [], []

    def random(self, below):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self.state >> 33) % below

    def open(self, text, registered):
        self.host += 300 + self.random(500)
        text, number = (None, self.texts[text]) if registered else (text, None)
        self.ranges.append([self.host, 0, 59, None, None, None, text, self.tid, None, number, 0,
                            None, None, None, None, None, None, None, None, None])
        return self.ranges[-1]

    def close(self, row):
        self.host += 200 + self.random(300)
        row[1] = self.host

    def call(self, name):
        self.correlation += 1
        start = self.host = self.host + 100
        self.host += 900 + self.random(3000)
        self.calls.append((start, self.host, 1, self.tid, self.correlation, self.texts[name], 0, None))

    def launch(self, name, rows):
        self.call("cuKernelGetFunction")
        self.call("cudaLaunchKernel_v7000")
        start = max(self.device + 700, self.host + 2000)
        self.device = start + 1500 + self.random(9000)
        demangled, short = self.texts[f"void {name}<c10::BFloat16, (int){rows % 7}>(T1 *, const T1 *, int)"], self.texts[name]
        self.kernels.append((start, self.device, 0, 1, 0, 7, self.correlation, self.pid, demangled, short, short, 1, 1, 40, rows,
                             1, 1, 128, 1, 1, 16, 2048, 0, 250871808, self.correlation, 32768, None, 0))

    def bare_step(self):
        for kernel in range(KERNELS_PER_STEP):
            self.launch(f"at::native::kernel_{kernel % 97}", 1 + self.random(64))
        self.host = max(self.host, self.device + 3000)

    def step(self):
        whole = self.open("decode_step", False)
        for layer in range(LAYERS):
            block = self.open(f"model.layers.{layer}", True)
            for module in range(MODULES):
                scope = self.open(f"model.layers.{layer}.mlp.experts.{module}", module % 2 == 0)
                for kernel in range(KERNELS):
                    names = [f"aten::operator_{module}_{kernel}_{depth}{SIZES}" for depth in range(4)]
                    chain = [self.open(name, depth % 2 == 0) for depth, name in enumerate(names)]
                    self.launch(f"at::native::kernel_{(module * KERNELS + kernel) % 97}", 1 + self.random(64))
                    for row in reversed(chain):
                        self.close(row)
                for view in range(3):
                    self.close(self.open(f"aten::view_{view}", view == 0))
                self.close(scope)
            self.close(block)
        self.call("cudaMemcpyAsync_v3020")
        start = max(self.device + 700, self.host + 1000)
        self.device = start + 1200
        self.copies.append((start, self.device, 0, 1, 0, 7, self.correlation, self.pid, 4096, 2, None, 2, 1,
                            None, None, None, None, None, None, None, 1))
        self.host = max(self.host, self.device + 3000)
        self.close(whole)

    def hand_over(self, base):
        for table, rows in (("NVTX_EVENTS", self.ranges), ("CUPTI_ACTIVITY_KIND_RUNTIME", self.calls),
                            ("CUPTI_ACTIVITY_KIND_KERNEL", self.kernels), ("CUPTI_ACTIVITY_KIND_MEMCPY", self.copies)):
            if rows:
                base.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            rows.clear()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--megabytes", type=int, default=830)
    parser.add_argument("--bare", action="store_true")
    arguments = parser.parse_args()
    if os.path.exists(arguments.out):
        os.unlink(arguments.out)
    base = sqlite3.connect(arguments.out, isolation_level=None)
    base.execute("PRAGMA journal_mode = OFF")
    base.execute("PRAGMA synchronous = OFF")
    base.executescript(SCHEMA)
    base.execute("BEGIN")
    texts = Texts()
    processes = [Process(4001, texts), Process(4002, texts)]
    size = BYTES_PER_BARE_STEP if arguments.bare else BYTES_PER_STEP
    steps = max(2, round(arguments.megabytes * 1e6 / size))
    for step in range(steps):
        process = processes[step // BATCH % 2]
        process.bare_step() if arguments.bare else process.step()
        if step % BATCH == BATCH - 1 or step == steps - 1:
            process.hand_over(base)
    base.executemany("INSERT INTO StringIds VALUES (?, ?)", ((number, text) for text, number in texts.numbers.items()))
    for device, process in enumerate(processes):
        uuid = f"00000000-0000-0000-0000-00000000000{device}"
        base.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, ?, 'NVIDIA H200', '', 1, 62914560, 150109880320, 4814304000000, "
                     "1980000000, 132, ?, ?, 0, 'GH100', ?, 9, 0)", (device, device, uuid, device))
        base.execute("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?, 0, ?)", (device, process.pid >> 24 & 0xFFFFFF))
    base.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2025.3.2.0')")
    base.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.3')")
    base.execute("COMMIT")
    base.close()
    print(f"{arguments.out}: {os.path.getsize(arguments.out) / 1e6:.1f} MB, {steps * KERNELS_PER_STEP} kernels")


if __name__ == "__main__":
    main()
