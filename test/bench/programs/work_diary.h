// Shared by tenants that work for a given time from a given start, and report their work.
#pragma once

#include <sys/time.h>

#include "measure.h"

inline double wallClock() {
  timeval now;
  gettimeofday(&now, nullptr);
  return now.tv_sec + now.tv_usec * 1e-6;
}

inline void spin(double duration) {
  for (const double end = seconds() + duration; seconds() < end;) {
  }
}

/// Work done, and the duration of each piece.
struct Diary {
  std::vector<double> times;
  double first = 0, last = 0;

  template <class Work>
  void keep(double start, double duration, Work work) {
    while (wallClock() < start) spin(20e-6);
    first = seconds();
    for (last = first; last - first < duration;) {
      work();
      const double now = seconds();
      times.push_back(now - last);
      last = now;
    }
  }
  double rate() const { return times.size() / (last - first); }
  double quantile(double q) {
    std::sort(times.begin(), times.end());
    return times[static_cast<std::size_t>(q * (times.size() - 1))];
  }

  void tell() {
    report("rate", rate(), "1/s");
    report("p50", quantile(0.5) * 1e6, "us");
    report("p99", quantile(0.99) * 1e6, "us");
  }
};
