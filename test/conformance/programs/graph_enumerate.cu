// Nodes, roots, edges and neighbours of a graph of 3,000 nodes, asked for as a whole, in part and with room to spare; edges are added and removed.
// conformance: judges=itself
#include <algorithm>
#include <vector>

#include "graphs.h"

int main() {
  constexpr std::size_t layers = 1000, width = 3;
  cudaGraph_t graph = nullptr;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  std::vector<cudaGraphNode_t> nodes(layers * width);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t layer = i / width;
    EXPECT_OK(cudaGraphAddEmptyNode(&nodes[i], graph, layer == 0 ? nullptr : &nodes[(layer - 1) * width], layer == 0 ? 0 : width));
  }
  const std::size_t edges = (layers - 1) * width * width;
  std::size_t count = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &count));
  EXPECT(count == nodes.size());
  std::vector<cudaGraphNode_t> found(count + 5, nodes[0]);
  count = found.size();
  EXPECT_OK(cudaGraphGetNodes(graph, found.data(), &count));
  EXPECT(count == nodes.size() && found[count] == nullptr && found[count + 4] == nullptr);
  found.resize(count);
  std::vector<cudaGraphNode_t> sorted = nodes;
  std::sort(sorted.begin(), sorted.end());
  std::sort(found.begin(), found.end());
  EXPECT(found == sorted);

  count = 0;
  EXPECT_OK(cudaGraphGetRootNodes(graph, nullptr, &count));
  EXPECT(count == width);
  EXPECT_OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  EXPECT(count == edges);
  std::vector<cudaGraphNode_t> from(edges), to(edges);
  EXPECT_OK(cudaGraphGetEdges(graph, from.data(), to.data(), nullptr, &count));
  EXPECT(count == edges);
  std::vector<std::size_t> place(edges);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < edges; ++i) {
    const auto a = std::find(nodes.begin(), nodes.end(), from[i]) - nodes.begin();
    const auto b = std::find(nodes.begin(), nodes.end(), to[i]) - nodes.begin();
    wrong += a / static_cast<long>(width) + 1 != b / static_cast<long>(width);
  }
  EXPECT(wrong == 0);
  count = 2;
  EXPECT_OK(cudaGraphGetEdges(graph, from.data(), to.data(), nullptr, &count));
  EXPECT(count == 2);

  cudaGraphNode_t near[8]{};
  count = 8;
  EXPECT_OK(cudaGraphNodeGetDependencies(nodes[width], near, nullptr, &count));
  EXPECT(count == width && near[3] == nullptr);
  EXPECT_OK(cudaGraphNodeGetDependentNodes(nodes[width], nullptr, nullptr, &count));
  EXPECT(count == width);

  EXPECT_OK(cudaGraphRemoveDependencies(graph, &nodes[0], &nodes[width], nullptr, 1));
  EXPECT_OK(cudaGraphNodeGetDependencies(nodes[width], nullptr, nullptr, &count));
  EXPECT(count == width - 1);
  EXPECT_OK(cudaGraphAddDependencies(graph, &nodes[0], &nodes[width], nullptr, 1));
  EXPECT_OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  EXPECT(count == edges);
  EXPECT(cudaGraphAddDependencies(graph, &nodes[0], &nodes[width], nullptr, 1) == cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaGraphDestroyNode(nodes.back()));
  EXPECT_OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  EXPECT(count == edges - width);
  EXPECT_OK(cudaGraphDestroy(graph));
  return verdict();
}
