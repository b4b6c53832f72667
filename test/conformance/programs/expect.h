// What programs share that judge themselves: every expectation that fails is printed, and the exit status says whether one did.
#pragma once

#include "show.h"

inline int wrongExpectations = 0;

inline void expect(bool holds, const char* what, int line) {
  if (holds || ++wrongExpectations > 20) return;
  std::printf("line %d: not so: %s\n", line, what);
}
inline void expectOk(cudaError_t result, const char* call, int line) {
  if (result == cudaSuccess || ++wrongExpectations > 20) return;
  std::printf("line %d: %s: %s\n", line, call, resultName(result));
}
#define EXPECT(...) expect(__VA_ARGS__, #__VA_ARGS__, __LINE__)
#define EXPECT_OK(...) expectOk(__VA_ARGS__, #__VA_ARGS__, __LINE__)

inline int verdict() {
  std::printf("%s\n", wrongExpectations == 0 ? "as expected" : "not as expected");
  return wrongExpectations == 0 ? 0 : 1;
}
