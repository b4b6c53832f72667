// The log of errors: a callback, an iterator, dumps to memory and to a file.
// conformance: flags=-lcuda judges=itself
#include <unistd.h>

#include <cstring>
#include <string>

#include "stream_memory.h"

struct Seen {
  int calls = 0;
  std::string last;
};

void note(void* data, CUlogLevel level, char* message, size_t length) {
  Seen& seen = *static_cast<Seen*>(data);
  if (level == CU_LOG_LEVEL_ERROR) ++seen.calls;
  seen.last.assign(message, length);
}

/// A mistake that the driver explains in its log.
void mistake() {
  size_t size = 10;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(nullptr, nullptr, &size, 0));
}

void callbacks() {
  Seen seen;
  CUlogsCallbackHandle handle = nullptr;
  OK(cuLogsRegisterCallback(note, &seen, &handle));
  mistake();
  EXPECT(seen.calls > 0);
  EXPECT(!seen.last.empty());
  OK(cuLogsUnregisterCallback(handle));
  const int before = seen.calls;
  mistake();
  EXPECT(seen.calls == before);
}

void memory() {
  CUlogIterator from = 0;
  static char text[25600];
  size_t size = sizeof text;
  OK(cuLogsCurrent(&from, 0));
  OK(cuLogsDumpToMemory(&from, text, &size, 0));
  EXPECT(size == 0);
  mistake();
  size = sizeof text;
  OK(cuLogsDumpToMemory(&from, text, &size, 0));
  EXPECT(size > 0 && size == std::strlen(text));
  EXPECT(std::strstr(text, "buffer cannot be NULL") != nullptr);
  EXPECT(text[0] == '[' && std::strstr(text, "[CUDA][E]") != nullptr);
  size = sizeof text;
  OK(cuLogsDumpToMemory(&from, text, &size, 0));  // the iterator has advanced
  EXPECT(size == 0);
  mistake();
  size = 4;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&from, text, &size, 0));
  EXPECT(size == 0);
}

void file() {
  char path[] = "/tmp/logs-XXXXXX";
  const int made = mkstemp(path);
  close(made);
  mistake();
  OK(cuLogsDumpToFile(nullptr, path, 0));
  std::FILE* const in = std::fopen(path, "r");
  std::string all;
  for (int c; (c = std::fgetc(in)) != EOF;) all += static_cast<char>(c);
  std::fclose(in);
  EXPECT(all.find("buffer cannot be NULL") != std::string::npos);
  EXPECT(cuLogsDumpToFile(nullptr, "/no such directory/log", 0) != CUDA_SUCCESS);
  unlink(path);
}

int main() {
  useContext();
  callbacks();
  memory();
  file();
  EXPECT(cuLogsCurrent(nullptr, 0) != CUDA_SUCCESS);
  EXPECT(cuLogsRegisterCallback(nullptr, nullptr, nullptr) != CUDA_SUCCESS);
  return verdict();
}
