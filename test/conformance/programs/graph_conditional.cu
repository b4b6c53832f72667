// Conditional nodes: the handle's first value decides at each launch whether the body runs. Without support the program ends.
// conformance: flags=-lcuda judges=itself
#include "stream_memory.h"

/// A graph whose body stores 7, if the value of the condition is not 0 at first.
class Conditional {
 public:
  Conditional(CUcontext context, CUdeviceptr at, unsigned value) {
    OK(cuGraphCreate(&graph_, 0));
    supported_ = cuGraphConditionalHandleCreate(&handle_, graph_, context, value, CU_GRAPH_COND_ASSIGN_DEFAULT);
    if (supported_ != CUDA_SUCCESS) return;
    CUgraphNode node = nullptr, child = nullptr;
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = handle_;
    parameters.conditional.type = CU_GRAPH_COND_TYPE_IF;
    parameters.conditional.size = 1;
    parameters.conditional.ctx = context;
    OK(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &parameters));
    if (parameters.conditional.phGraph_out == nullptr) return;
    CUDA_MEMSET_NODE_PARAMS store{};
    store.dst = at, store.value = 7, store.elementSize = 4, store.width = 1, store.height = 1;
    OK(cuGraphAddMemsetNode(&child, parameters.conditional.phGraph_out[0], nullptr, 0, &store, context));
    OK(cuGraphInstantiate(&executable_, graph_, 0));
  }
  ~Conditional() {
    if (executable_ != nullptr) OK(cuGraphExecDestroy(executable_));
    OK(cuGraphDestroy(graph_));
  }
  CUresult supported() const { return supported_; }
  void launch() const {
    OK(cuGraphLaunch(executable_, nullptr));
    OK(cuCtxSynchronize());
  }

 private:
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  CUgraphConditionalHandle handle_ = 0;
  CUresult supported_ = CUDA_SUCCESS;
};

int main() {
  const CUcontext context = useContext();
  const Words words;
  const Conditional yes(context, words.device, 1), no(context, words.device + 4, 0);
  if (yes.supported() == CUDA_ERROR_NOT_SUPPORTED) return verdict();
  OK(yes.supported());
  OK(no.supported());
  for (int round = 0; round < 2; ++round) {
    OK(cuMemsetD8(words.device, 0, 8));
    yes.launch();
    no.launch();
    EXPECT(words.at(0) == 7 && words.at(1) == 0);
  }
  return verdict();
}
