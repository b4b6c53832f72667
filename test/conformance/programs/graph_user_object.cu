// User objects: the destructor runs once the program and all graphs have let go.
// conformance: judges=itself
#include <unistd.h>

#include <atomic>

#include "graphs.h"

static std::atomic<int> destroyed{0};
static void destroy(void* by) { destroyed += *static_cast<int*>(by); }

/// Destructors may run later than the call that causes them, on another thread.
static bool becomes(int value) {
  for (int i = 0; i < 1000 && destroyed != value; ++i) usleep(10'000);
  return destroyed == value;
}

int main() {
  int one = 1, ten = 10;
  cudaUserObject_t object = nullptr, other = nullptr;
  cudaGraph_t graph = nullptr, clone = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t node = nullptr;
  EXPECT_OK(cudaFree(nullptr));
  EXPECT_OK(cudaUserObjectCreate(&object, &one, destroy, 2, cudaUserObjectNoDestructorSync));
  EXPECT_OK(cudaUserObjectRetain(object, 1));
  EXPECT_OK(cudaUserObjectRelease(object, 2));
  EXPECT(destroyed == 0);
  EXPECT_OK(cudaUserObjectRelease(object, 1));
  EXPECT(becomes(1));

  EXPECT_OK(cudaUserObjectCreate(&other, &ten, destroy, 1, cudaUserObjectNoDestructorSync));
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  EXPECT_OK(cudaGraphRetainUserObject(graph, other, 1, cudaGraphUserObjectMove));
  EXPECT_OK(cudaGraphClone(&clone, graph));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaGraphLaunch(exec, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT(destroyed == 1);
  EXPECT_OK(cudaGraphDestroy(clone));
  EXPECT(becomes(11));
  return verdict();
}
