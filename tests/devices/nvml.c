/* A libnvidia-ml.so.1 whose GPUs are what a text file says they are.

   The file that $FAKE_NVML names holds lines "NAME VALUE", and is read anew at every call. What it does not mention is
   not supported, as on a GPU that lacks it. There is one GPU, and a slice of it where "sliceUuid" is said. OLD_DRIVER has
   names that later ones were given; BARE_DRIVER lacks those functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, UNKNOWN = 999 };
typedef unsigned int uint;
typedef unsigned long long ull;
typedef struct { uint pid; ull memory; uint instance, compute; } process;
typedef struct { ull total, available, used; } memory;

static char gpu, slice; /* handles are their addresses */

static int said(const char *name, char *value, size_t size) {
  FILE *file = fopen(getenv("FAKE_NVML") ? getenv("FAKE_NVML") : "", "r");
  char line[256];
  size_t length = strlen(name);
  int found = 0;
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, name, length) && line[length] == ' ') {
      line[strcspn(line, "\n")] = 0;
      snprintf(value, size, "%s", line + length + 1);
      found = 1;
    }
  if (file) fclose(file);
  return found;
}

static int text(const char *name, char *value, uint size) { return said(name, value, size) ? SUCCESS : NOT_SUPPORTED; }

static int number(const char *name, ull *value) {
  char found[256];
  if (!said(name, found, sizeof found)) return NOT_SUPPORTED;
  *value = strtoull(found, NULL, 0);
  return SUCCESS;
}

static int small(const char *name, uint *value) {
  ull found = 0;
  int status = number(name, &found);
  if (!status) *value = (uint)found;
  return status;
}

int nvmlInitWithFlags(uint flags) { ull value; (void)flags; return number("initFails", &value) ? SUCCESS : UNKNOWN; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int status) { (void)status; return "as the test says"; }
int nvmlSystemGetDriverVersion(char *value, uint size) { return text("driver", value, size); }
int nvmlDeviceGetCount_v2(uint *count) { if (small("count", count)) *count = 1; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(uint index, void **device) {
  uint count;
  nvmlDeviceGetCount_v2(&count);
  *device = &gpu;
  return index < count ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetUUID(void *device, char *value, uint size) {
  return text(device == &slice ? "sliceUuid" : "uuid", value, size);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  char found[256];
  if (said("uuid", found, sizeof found) && !strcmp(found, uuid)) *device = &gpu;
  else if (said("sliceUuid", found, sizeof found) && !strcmp(found, uuid)) *device = &slice;
  else return NOT_FOUND;
  return SUCCESS;
}

int nvmlDeviceIsMigDeviceHandle(void *device, uint *is) { *is = device == &slice; return SUCCESS; }

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **whole) {
  *whole = &gpu;
  return device == &slice ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetMemoryInfo(void *device, memory *value) {
  (void)device;
  int status = number("memoryTotal", &value->total);
  if (!status) status = number("memoryUsed", &value->used);
  if (!status) value->available = value->total - value->used;
  return status;
}

int nvmlDeviceGetName(void *device, char *value, uint size) { (void)device; return text("name", value, size); }
int nvmlDeviceGetEnforcedPowerLimit(void *device, uint *value) { (void)device; return small("powerLimit", value); }
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, uint *value) { (void)device; return small("pcie", value); }
int nvmlDeviceGetCurrPcieLinkWidth(void *device, uint *value) { (void)device; return small("width", value); }
int nvmlDeviceGetClockInfo(void *device, int kind, uint *value) { (void)device, (void)kind; return small("clock", value); }

int nvmlDeviceGetMaxClockInfo(void *device, int kind, uint *value) {
  (void)device, (void)kind;
  return small("maxClock", value);
}

int nvmlDeviceGetEccMode(void *device, int *now, int *next) {
  uint found = 0;
  int status = small("ecc", &found);
  (void)device;
  *now = *next = (int)found;
  return status;
}

int nvmlDeviceGetMigMode(void *device, uint *now, uint *next) { (void)device; *next = 0; return small("mig", now); }

int nvmlDeviceGetNvLinkState(void *device, uint link, uint *active) {
  uint links;
  (void)device;
  if (small("nvlinks", &links)) return NOT_SUPPORTED;
  *active = link < links;
  return SUCCESS;
}

#ifdef OLD_DRIVER
#define REASONS nvmlDeviceGetCurrentClocksThrottleReasons
#define PROCESSES nvmlDeviceGetComputeRunningProcesses_v2
#else
#define REASONS nvmlDeviceGetCurrentClocksEventReasons
#define PROCESSES nvmlDeviceGetComputeRunningProcesses_v3
#endif

#ifndef BARE_DRIVER
int REASONS(void *device, ull *value) {
  (void)device;
  return number("reasons", value);
}

int nvmlDeviceGetViolationStatus(void *device, int policy, ull *times) {
  char name[32];
  snprintf(name, sizeof name, "violation%d", policy);
  (void)device;
  times[0] = 0;
  return number(name, &times[1]);
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, ull *value) {
  return device == &slice ? NOT_SUPPORTED : number("energy", value);
}

int PROCESSES(void *device, uint *count, process *found) {
  char pids[256], *rest = pids, *pid;
  uint room = *count;
  (void)device;
  if (!said("pids", pids, sizeof pids)) return NOT_SUPPORTED;
  for (*count = 0; (pid = strtok_r(rest, " ", &rest)); ++*count)
    if (found && *count < room) found[*count] = (process){.pid = (uint)atoi(pid)};
  return *count && !found ? INSUFFICIENT_SIZE : SUCCESS;
}
#endif
