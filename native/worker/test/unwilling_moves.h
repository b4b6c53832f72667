// First words of copied memory at which the driver of unwilling_driver.cpp does not copy.
#pragma once

namespace worker::test {

enum class Order : unsigned long long {
  failToGpu = 0xfa11'0001'0000'0001,   ///< waits a moment, then fails
  dieToGpu = 0xfa11'0001'0000'0002,    ///< ends the worker
  failToHost = 0xfa11'0001'0000'0003,  ///< fails on the way back
  dieToHost = 0xfa11'0001'0000'0004,   ///< ends the worker on the way back
};

}  // namespace worker::test
