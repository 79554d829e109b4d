/* A stand-in for NVIDIA's management library, for tests on machines without a GPU.
 *
 * Answers as driver 580 does for one H200; the values are those of a real one where the tests look at them. What an H200
 * does not support, and what this file leaves out, is answered or missing as from a driver that does not have it.
 * The signatures are those of NVIDIA's published header; nothing else is taken from it. */

#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3 };
typedef void *device_t;

struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char address[32]; };

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) { strncpy(text, "580.159.04", length); return SUCCESS; }
int nvmlSystemGetNVMLVersion(char *text, unsigned length) { strncpy(text, "13.580.159.04", length); return SUCCESS; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13000; return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device) { *device = device; return index == 0 ? SUCCESS : 2; }

int nvmlDeviceGetName(device_t d, char *text, unsigned length) { strncpy(text, "NVIDIA H200", length); return SUCCESS; }
int nvmlDeviceGetUUID(device_t d, char *text, unsigned length) {
    strncpy(text, "GPU-00000000-1111-2222-3333-444444444444", length);
    return SUCCESS;
}
int nvmlDeviceGetCudaComputeCapability(device_t d, int *major, int *minor) { *major = 9; *minor = 0; return SUCCESS; }
int nvmlDeviceGetArchitecture(device_t d, unsigned *architecture) { *architecture = 9; return SUCCESS; }
int nvmlDeviceGetMemoryInfo_v2(device_t d, struct memory_v2 *memory) {
    memory->total = 143771ull << 20;
    memory->used = 512ull << 20;
    return SUCCESS;
}
/* Clock 1 is the multiprocessors', 2 the memory's. */
int nvmlDeviceGetClockInfo(device_t d, int clock, unsigned *mhz) { *mhz = clock == 1 ? 345 : 3201; return SUCCESS; }
int nvmlDeviceGetMaxClockInfo(device_t d, int clock, unsigned *mhz) { *mhz = clock == 1 ? 1980 : 3201; return SUCCESS; }
int nvmlDeviceGetEnforcedPowerLimit(device_t d, unsigned *milliwatts) { *milliwatts = 700000; return SUCCESS; }
int nvmlDeviceGetPowerUsage(device_t d, unsigned *milliwatts) { *milliwatts = 76500; return SUCCESS; }
/* Half a joule more each time. */
int nvmlDeviceGetTotalEnergyConsumption(device_t d, unsigned long long *millijoules) {
    static unsigned long long counted = 1000000;
    *millijoules = counted += 500;
    return SUCCESS;
}
int nvmlDeviceGetTemperature(device_t d, int sensor, unsigned *celsius) { *celsius = 31; return SUCCESS; }
int nvmlDeviceGetCurrentClocksThrottleReasons(device_t d, unsigned long long *reasons) { *reasons = 1; return SUCCESS; }
int nvmlDeviceGetMigMode(device_t d, unsigned *now, unsigned *next) { *now = *next = 0; return SUCCESS; }
int nvmlDeviceGetEccMode(device_t d, int *now, int *next) { *now = *next = 1; return SUCCESS; }
int nvmlDeviceGetPersistenceMode(device_t d, int *mode) { *mode = 1; return SUCCESS; }
int nvmlDeviceGetComputeMode(device_t d, int *mode) { *mode = 3; return SUCCESS; }
int nvmlDeviceGetPciInfo_v3(device_t d, struct pci *pci) {
    memset(pci, 0, sizeof *pci);
    strcpy(pci->address, "00000000:00:05.0");
    return SUCCESS;
}
int nvmlDeviceGetCurrPcieLinkGeneration(device_t d, unsigned *generation) { *generation = 5; return SUCCESS; }
int nvmlDeviceGetCurrPcieLinkWidth(device_t d, unsigned *width) { return NOT_SUPPORTED; }
int nvmlDeviceGetNumGpuCores(device_t d, unsigned *cores) { *cores = 16896; return SUCCESS; }
