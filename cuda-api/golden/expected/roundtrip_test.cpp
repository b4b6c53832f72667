// Generated. Do not edit, change cuda-api/.
#include "native/worker/session/thread.h"
#include "remote.h"
#include "roundtrip.h"
#include "worker_bodies.h"

namespace worker {

CUresult cuToyClose(Thread&, CUstream stream) {
  ++roundtrip::record().executed;
  CHECK(roundtrip::same(stream, roundtrip::object<CUstream>(0)));
  return CUDA_SUCCESS;
}

CUresult cuToyCopy(Thread&, wire::Decoder&, wire::Encoder&, Window) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuToyLoad(Thread&, CUmodule* module, const char* name, const void* image) {
  ++roundtrip::record().executed;
  *module = roundtrip::object<CUmodule>(0);
  CHECK(std::strcmp(name, "name 1") == 0);
  CHECK(roundtrip::same(image, roundtrip::object<const void*>(2)));
  return CUDA_SUCCESS;
}

CUresult toyStage(Thread&, wire::Decoder&, wire::Encoder&) { return CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace worker

namespace {

CUresult driver_cuToyOpen_v2(CUstream* stream, CUdevice device) {
  ++roundtrip::record().executed;
  *stream = roundtrip::object<CUstream>(0);
  CHECK(roundtrip::same(device, roundtrip::value<CUdevice>(1)));
  return CUDA_SUCCESS;
}

CUresult driver_cuToyWait(CUstream stream) {
  ++roundtrip::record().executed;
  CHECK(roundtrip::same(stream, roundtrip::object<CUstream>(0)));
  return CUDA_SUCCESS;
}

CUresult driver_cuToyMark(CUstream stream) {
  ++roundtrip::record().executed;
  CHECK(roundtrip::same(stream, roundtrip::object<CUstream>(0)));
  return CUDA_SUCCESS;
}

CUresult driver_cuToyFill(unsigned long long address, const CUtoyBox* box, const CUdevice* device, CUstream stream) {
  ++roundtrip::record().executed;
  CHECK(roundtrip::same(address, roundtrip::value<unsigned long long>(0)));
  CHECK(roundtrip::same(*box, roundtrip::value<CUtoyBox>(1)));
  CHECK(roundtrip::same(*device, roundtrip::value<CUdevice>(2)));
  CHECK(roundtrip::same(stream, roundtrip::object<CUstream>(3)));
  return CUDA_SUCCESS;
}

CUresult driver_cuToyPaint(CUtoyAddress address, size_t bytes, CUstream stream) {
  ++roundtrip::record().executed;
  CHECK(roundtrip::same(address, roundtrip::value<CUtoyAddress>(0)));
  CHECK(roundtrip::same(bytes, roundtrip::value<size_t>(1)));
  CHECK(roundtrip::same(stream, roundtrip::object<CUstream>(2)));
  return CUDA_SUCCESS;
}

CUresult driver_cuToyPlay(CUmodule module, CUstream stream) {
  ++roundtrip::record().executed;
  CHECK(roundtrip::same(module, roundtrip::object<CUmodule>(0)));
  CHECK(roundtrip::same(stream, roundtrip::object<CUstream>(1)));
  return CUDA_SUCCESS;
}

CUresult driver_cuToyPart(CUmemGenericAllocationHandle* part, size_t* bytes, CUmodule module) {
  ++roundtrip::record().executed;
  *part = roundtrip::object<CUmemGenericAllocationHandle>(0);
  *bytes = roundtrip::value<size_t>(1);
  CHECK(roundtrip::same(module, roundtrip::object<CUmodule>(2)));
  return CUDA_SUCCESS;
}

CUresult driver_cuToyGather(const CUstream* streams, const CUtoyOrder* orders, const CUtoyOrder* more, unsigned int count, CUmodule* modules, unsigned short* sizes, CUtoyBox* box) {
  ++roundtrip::record().executed;
  for (int i = 0; i < 3; ++i) CHECK(roundtrip::same(streams[i], roundtrip::object<CUstream>(0 + 16 * i)));
  for (int i = 0; i < 3; ++i) CHECK(roundtrip::same(orders[i], roundtrip::value<CUtoyOrder>(1 + 16 * i)));
  for (int i = 0; i < 3; ++i) CHECK(roundtrip::same(more[i], roundtrip::value<CUtoyOrder>(2 + 16 * i)));
  CHECK(roundtrip::same(count, static_cast<unsigned int>(3)));
  for (int i = 0; i < 3; ++i) modules[i] = roundtrip::object<CUmodule>(4 + 16 * i);
  for (int i = 0; i < 3; ++i) sizes[i] = roundtrip::value<unsigned short>(5 + 16 * i);
  CHECK(roundtrip::same(*box, roundtrip::value<CUtoyBox>(6)));
  *box = roundtrip::value<CUtoyBox>(6 + 100);
  return CUDA_SUCCESS;
}

CUresult driver_cuToyAsk(int* answer, CUdevice device) {
  ++roundtrip::record().executed;
  *answer = roundtrip::value<int>(0);
  CHECK(roundtrip::same(device, roundtrip::value<CUdevice>(1)));
  return CUDA_SUCCESS;
}

TEST_CASE("cuToyOpen_v2 reaches the driver whole, or is refused") {
  roundtrip::thread().driver.cuToyOpen_v2 = &driver_cuToyOpen_v2;
  CUstream stream{};
  CUdevice device = roundtrip::value<CUdevice>(1);
  roundtrip::test([&] {
    const CUresult status = remote::cuToyOpen_v2(&stream, device);
    if (status != CUDA_SUCCESS) return status;
    CHECK(roundtrip::same(stream, roundtrip::handle<CUstream>(0)));
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed == 0);
  roundtrip::testNull([&] { return remote::cuToyOpen_v2(nullptr, device); });
}

TEST_CASE("cuToyClose reaches the driver whole, or is refused") {
  CUstream stream = roundtrip::handle<CUstream>(0);
  roundtrip::test([&] {
    const CUresult status = remote::cuToyClose(stream);
    if (status != CUDA_SUCCESS) return status;
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed == 0);
  REQUIRE(!roundtrip::record().removed.empty());
  CHECK(roundtrip::record().removed.front() == (std::uint64_t)stream);
}

TEST_CASE("cuToyWait reaches the driver whole, or is refused") {
  roundtrip::thread().driver.cuToyWait = &driver_cuToyWait;
  CUstream stream = roundtrip::handle<CUstream>(0);
  roundtrip::test([&] {
    const CUresult status = remote::cuToyWait(stream);
    if (status != CUDA_SUCCESS) return status;
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed > 0);
}

TEST_CASE("cuToyMark reaches the driver whole, or is refused") {
  roundtrip::thread().driver.cuToyMark = &driver_cuToyMark;
  CUstream stream = roundtrip::handle<CUstream>(0);
  roundtrip::test([&] {
    const CUresult status = remote::cuToyMark(stream);
    if (status != CUDA_SUCCESS) return status;
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed == 0);
}

TEST_CASE("cuToyFill reaches the driver whole, or is refused") {
  roundtrip::thread().driver.cuToyFill = &driver_cuToyFill;
  unsigned long long address = roundtrip::value<unsigned long long>(0);
  CUtoyBox box = roundtrip::value<CUtoyBox>(1);
  CUdevice device = roundtrip::value<CUdevice>(2);
  CUstream stream = roundtrip::handle<CUstream>(3);
  roundtrip::test([&] {
    const CUresult status = remote::cuToyFill(address, &box, &device, stream);
    if (status != CUDA_SUCCESS) return status;
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed == 0);
  roundtrip::testNull([&] { return remote::cuToyFill(address, nullptr, &device, stream); });
}

TEST_CASE("cuToyPaint reaches the driver whole, or is refused") {
  roundtrip::thread().driver.cuToyPaint = &driver_cuToyPaint;
  CUtoyAddress address = roundtrip::value<CUtoyAddress>(0);
  size_t bytes = roundtrip::value<size_t>(1);
  CUstream stream = roundtrip::handle<CUstream>(2);
  roundtrip::test([&] {
    const CUresult status = remote::cuToyPaint(address, bytes, stream);
    if (status != CUDA_SUCCESS) return status;
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed == 0);
}

TEST_CASE("cuToyPlay reaches the driver whole, or is refused") {
  roundtrip::thread().driver.cuToyPlay = &driver_cuToyPlay;
  CUmodule module = roundtrip::handle<CUmodule>(0);
  CUstream stream = roundtrip::handle<CUstream>(1);
  roundtrip::test([&] {
    const CUresult status = remote::cuToyPlay(module, stream);
    if (status != CUDA_SUCCESS) return status;
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed == 0);
}

TEST_CASE("cuToyLoad reaches the driver whole, or is refused") {
  CUmodule module{};
  const char* name = "name 1";
  const void* image = roundtrip::object<const void*>(2);
  roundtrip::test([&] {
    const CUresult status = remote::cuToyLoad(&module, name, image);
    if (status != CUDA_SUCCESS) return status;
    CHECK(roundtrip::same(module, roundtrip::handle<CUmodule>(0)));
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed == 0);
  roundtrip::testNull([&] { return remote::cuToyLoad(nullptr, name, image); });
  roundtrip::testNull([&] { return remote::cuToyLoad(&module, nullptr, image); });
}

TEST_CASE("cuToyPart reaches the driver whole, or is refused") {
  roundtrip::thread().driver.cuToyPart = &driver_cuToyPart;
  CUmemGenericAllocationHandle part{};
  size_t bytes{};
  CUmodule module = roundtrip::handle<CUmodule>(2);
  roundtrip::test([&] {
    const CUresult status = remote::cuToyPart(&part, &bytes, module);
    if (status != CUDA_SUCCESS) return status;
    CHECK(roundtrip::same(part, roundtrip::handle<CUmemGenericAllocationHandle>(0)));
    CHECK(roundtrip::same(bytes, roundtrip::value<size_t>(1)));
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed == 0);
  roundtrip::testNull([&] { return remote::cuToyPart(nullptr, &bytes, module); });
}

TEST_CASE("cuToyGather reaches the driver whole, or is refused") {
  roundtrip::thread().driver.cuToyGather = &driver_cuToyGather;
  CUstream streams[3] = {roundtrip::handle<CUstream>(0 + 16 * 0), roundtrip::handle<CUstream>(0 + 16 * 1), roundtrip::handle<CUstream>(0 + 16 * 2)};
  CUtoyOrder orders[3] = {roundtrip::value<CUtoyOrder>(1 + 16 * 0), roundtrip::value<CUtoyOrder>(1 + 16 * 1), roundtrip::value<CUtoyOrder>(1 + 16 * 2)};
  CUtoyOrder more[3] = {roundtrip::value<CUtoyOrder>(2 + 16 * 0), roundtrip::value<CUtoyOrder>(2 + 16 * 1), roundtrip::value<CUtoyOrder>(2 + 16 * 2)};
  unsigned int count = static_cast<unsigned int>(3);
  CUmodule modules[3]{};
  unsigned short sizes[3]{};
  CUtoyBox box = roundtrip::value<CUtoyBox>(6);
  roundtrip::test([&] {
    box = roundtrip::value<CUtoyBox>(6);
    const CUresult status = remote::cuToyGather(streams, orders, more, count, modules, sizes, &box);
    if (status != CUDA_SUCCESS) return status;
    for (int i = 0; i < 3; ++i) CHECK(roundtrip::same(modules[i], roundtrip::handle<CUmodule>(4 + 16 * i)));
    for (int i = 0; i < 3; ++i) CHECK(roundtrip::same(sizes[i], roundtrip::value<unsigned short>(5 + 16 * i)));
    CHECK(roundtrip::same(box, roundtrip::value<CUtoyBox>(6 + 100)));
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed == 0);
  roundtrip::testNull([&] { return remote::cuToyGather(nullptr, orders, more, count, modules, sizes, &box); });
  roundtrip::testNull([&] { return remote::cuToyGather(streams, nullptr, more, count, modules, sizes, &box); });
  roundtrip::testNull([&] { return remote::cuToyGather(streams, orders, more, count, nullptr, sizes, &box); });
  roundtrip::testNull([&] { return remote::cuToyGather(streams, orders, more, count, modules, nullptr, &box); });
  roundtrip::testNull([&] { return remote::cuToyGather(streams, orders, more, count, modules, sizes, nullptr); });
}

TEST_CASE("cuToyAsk reaches the driver whole, or is refused") {
  roundtrip::thread().driver.cuToyAsk = &driver_cuToyAsk;
  int answer{};
  CUdevice device = roundtrip::value<CUdevice>(1);
  roundtrip::test([&] {
    const CUresult status = remote::cuToyAsk(&answer, device);
    if (status != CUDA_SUCCESS) return status;
    CHECK(roundtrip::same(answer, roundtrip::value<int>(0)));
    return CUDA_SUCCESS;
  });
  CHECK(roundtrip::record().ticketsPassed == 0);
  roundtrip::testNull([&] { return remote::cuToyAsk(nullptr, device); });
}

}  // namespace
