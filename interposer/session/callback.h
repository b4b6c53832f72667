// Host functions of streams (cuLaunchHostFunc, cuStreamAddCallback): one thread runs them in order.
#pragma once

#include <functional>

#include "wire/callback.h"

namespace interposer {

/// True on the thread that runs host functions: CUDA calls there are refused, as natively.
bool insideCallback();

/// Runs a function of the program on this thread, as one of those.
void asCallback(const std::function<void()>& run);

/// Enqueues `run` for that thread. The first call starts the thread.
void enqueueCallback(std::function<void()> run);

/// Calls the program's function.
void callProgram(const wire::Callback& callback);

/// A detached thread with every signal blocked, so that the program's handlers run on the program's
/// threads. False if the system starts none.
bool startThread(void* (*body)(void*), void* argument);

}  // namespace interposer
