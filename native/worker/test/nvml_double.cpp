// Answers as libnvidia-ml.so.1 does, for a machine without a GPU: two GPUs, the first with 100
// processes, of which one is under MPS too.
extern "C" {

struct ProcessInfo {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};

static int devices[2];

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 2, 0; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  return *device = &devices[index], 0;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned) {
  const char text[] = {'G', 'P', 'U', '-', device == &devices[0] ? 'a' : 'b', '\0'};
  for (unsigned i = 0; i < sizeof text; ++i) uuid[i] = text[i];
  return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* processes) {
  const unsigned room = *count;
  *count = device == &devices[0] ? 100 : 1;
  if (room < *count) return 7;
  for (unsigned i = 0; i < *count; ++i)
    processes[i] = {i + 1, device == &devices[0] ? i * 1024ULL : ~0ULL, 0, 0};
  return 0;
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(void* device, unsigned* count,
                                               ProcessInfo* processes) {
  if (device != &devices[0]) return 3;
  *count = 1;
  processes[0] = {100, 5, 0, 0};
  return 0;
}

int nvmlDeviceGetName(void*, char* name, unsigned length) {
  if (length < 4) return 7;
  for (unsigned i = 0; i < 4; ++i) name[i] = "abc"[i];
  return 0;
}

int nvmlDeviceGetEccMode(void*, unsigned* current, unsigned* pending) {
  return *current = 1, *pending = 2, 0;
}

/// Of the first clock; reading the second one fails, the others are not supported.
int nvmlDeviceGetClockInfo(void*, unsigned clock, unsigned* value) {
  *value = 255;
  return clock == 0 ? 0 : clock == 1 ? 999 : 3;
}

struct Pdi {
  unsigned version;
  unsigned long long value;
};

int nvmlDeviceGetPdi(void*, Pdi* pdi) {
  if (pdi->version != (sizeof(Pdi) | 1 << 24)) return 25;
  return pdi->value = 5, 0;
}

struct Event {
  void* device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};

static int set;

int nvmlEventSetCreate(void** created) { return *created = &set, 0; }

/// The first GPU tells its Xids, the second one does not.
int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* into) {
  return into == &set && types == 8 && device == &devices[0] ? 0 : 3;
}

/// Xid 31 twice, then Xid 79, then nothing.
int nvmlEventSetWait_v2(void*, Event* event, unsigned) {
  static int waits = 0;
  static const unsigned long long xids[] = {31, 31, 79};
  if (waits == 3) return 15;
  *event = {&devices[0], 8, xids[waits++], ~0u, ~0u};
  return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) { return *version = 14020, 0; }
}
