// Two processes that each play a part.
#pragma once

#include "processes.h"

/// Starts the driver in both, and returns the exit status. The child returns from main, not by
/// _exit: then a trace has its last calls.
template <class Owner, class User>
int playRoles(Owner owner, User user) {
  Processes processes;
  startDriver();
  if (!processes.isChild()) {
    owner(processes);
    return processes.end();
  }
  user(processes);
  return wrongExpectations == 0 ? 0 : 1;
}
