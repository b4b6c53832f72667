// Host functions of streams (cuLaunchHostFunc, cuStreamAddCallback): the worker asks, one thread of ours runs them in order.
#pragma once

#include "wire/message.h"

namespace interposer {

class Session;

/// True on the thread that runs host functions: CUDA calls there are refused, as natively.
bool insideCallback();

/// Called by the session's receiver; starts the thread with the first one.
void enqueueCallback(Session& session, const wire::Message& message);

/// A detached thread with every signal blocked, so that the program's handlers run on the program's threads.
void startThread(void* (*body)(void*), void* argument);

}  // namespace interposer
