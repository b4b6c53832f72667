// Threads for work beside the streams: branches of graphs and destructors of user objects.
#pragma once

#include <functional>

namespace simulator {

/// Runs a task on a helper thread soon. There are at most 32 of them; further tasks queue.
void runOnHelperThread(std::function<void()> task);

}  // namespace simulator
