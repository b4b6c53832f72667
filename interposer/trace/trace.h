// The trace of this process: its calls, and its work on the GPU. NVIDIA_VIRTUAL_TRACE names the
// file to which it is appended, NVIDIA_VIRTUAL_SUMMARY=1 asks for a table on stderr at exit. The
// worker may ask for the table too (wire::Welcome).
#pragma once

namespace interposer::trace {

/// The session is open. If a trace is wanted, starts the thread that fetches what the worker has
/// measured and appends to the file.
void sessionOpened();

}  // namespace interposer::trace
