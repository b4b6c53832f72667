// Physical memory is free once its handles are released and its mappings are gone.
#include "native/worker/accounts/physical_memory.h"

#include <doctest/doctest.h>

TEST_CASE("memory without a mapping is free when its handle is released") {
  worker::PhysicalMemory memory;
  memory.created(1, 100);
  CHECK(memory.released(1) == std::pair(std::uint64_t{100}, true));
  CHECK(memory.released(1) == std::pair(std::uint64_t{0}, true));
}

TEST_CASE("mapped memory is free when its last mapping and its handle are gone") {
  worker::PhysicalMemory memory;
  memory.created(2, 200);
  memory.mapped(2, 0x1000, 0x100);
  memory.mapped(2, 0x5000, 0x100);
  CHECK(memory.released(2).first == 0);
  CHECK(memory.unmapped(0x1000, 0x100) == 0);
  CHECK(memory.unmapped(0x5000, 0x100) == 200);
}

TEST_CASE("a handle number may be given again while its first memory is mapped") {
  worker::PhysicalMemory memory;
  memory.created(5, 500);
  memory.mapped(5, 0x1000, 0x100);
  CHECK(memory.released(5) == std::pair(std::uint64_t{0}, true));
  memory.created(5, 50);
  memory.mapped(5, 0x2000, 0x100);
  CHECK(memory.released(5).first == 0);
  CHECK(memory.unmapped(0x1000, 0x100) == 500);
  CHECK(memory.unmapped(0x2000, 0x100) == 50);
}

TEST_CASE("a mapping gives its memory a handle again") {
  worker::PhysicalMemory memory;
  memory.created(6, 600);
  memory.mapped(6, 0x1000, 0x100);
  CHECK(memory.released(6) == std::pair(std::uint64_t{0}, true));
  memory.retained(7, 0x10ff);
  CHECK(memory.unmapped(0x1000, 0x100) == 0);
  CHECK(memory.released(7) == std::pair(std::uint64_t{600}, true));
}

TEST_CASE("one unmap may cover several mappings") {
  worker::PhysicalMemory memory;
  memory.created(3, 300);
  memory.mapped(3, 0x1000, 0x100);
  memory.retained(3, 0x1000);
  CHECK(memory.released(3) == std::pair(std::uint64_t{0}, false));
  memory.created(4, 400);
  memory.mapped(4, 0x1100, 0x100);
  CHECK(memory.released(3).first == 0);
  CHECK(memory.released(4).first == 0);
  CHECK(memory.unmapped(0x1000, 0x200) == 700);
  CHECK(memory.unmapped(0x1000, 0x200) == 0);
}

TEST_CASE("memory in an array is free when its handle is released and the array has ended") {
  worker::PhysicalMemory memory;
  int arrays[2] = {};
  int contexts[2] = {};
  memory.created(1, 100);
  memory.created(2, 200);
  memory.mappedInto(1, &arrays[0], &contexts[0]);
  memory.mappedInto(1, &arrays[0], &contexts[0]);
  memory.mappedInto(1, &arrays[1], &contexts[1]);
  memory.mappedInto(2, &arrays[1], &contexts[1]);
  memory.mappedInto(3, &arrays[1], &contexts[1]);
  CHECK(memory.released(1) == std::pair(std::uint64_t{0}, true));
  CHECK(memory.arrayEnded(&arrays[0]) == 0);
  CHECK(memory.arrayEnded(&arrays[0]) == 0);
  CHECK(memory.arraysEnded(&contexts[0]) == 0);
  CHECK(memory.arraysEnded(&contexts[1]) == 100);
  CHECK(memory.released(2) == std::pair(std::uint64_t{200}, true));
}

TEST_CASE("held memory is free when it is let go, and its end is told once") {
  worker::PhysicalMemory memory;
  int ends = 0;
  memory.created(1, 100);
  const auto held = memory.hold(1);
  REQUIRE(held);
  CHECK(held->bytes == 100);
  memory.onEnd(held->number, [&] { ++ends; });
  memory.onEnd(held->number, [&] { ends += 10; });
  CHECK(memory.holdAgain(held->number));
  CHECK(memory.released(1).first == 0);
  CHECK(memory.letGo(held->number) == 0);
  CHECK(ends == 0);
  CHECK(memory.letGo(held->number) == 100);
  CHECK(ends == 1);
  CHECK(memory.letGo(held->number) == 0);
  CHECK(!memory.holdAgain(held->number));
  CHECK(!memory.hold(1));
}

TEST_CASE("memory that is imported into its own process is free with its last handle") {
  worker::PhysicalMemory memory;
  memory.created(1, 100);
  const auto held = memory.hold(1);
  memory.importedAgain(2, held->number);
  CHECK(memory.letGo(held->number) == 0);
  CHECK(memory.released(1) == std::pair(std::uint64_t{0}, true));
  CHECK(memory.released(2) == std::pair(std::uint64_t{100}, true));
}

TEST_CASE("imported memory costs nothing, cannot be held, and ends with its last handle") {
  worker::PhysicalMemory memory;
  auto companion = std::make_shared<int>(1);
  memory.imported(1, companion);
  memory.imported(1, companion);
  CHECK(companion.use_count() == 2);
  CHECK(!memory.hold(1));
  memory.mapped(1, 0x1000, 0x100);
  CHECK(memory.released(1) == std::pair(std::uint64_t{0}, false));
  CHECK(memory.released(1) == std::pair(std::uint64_t{0}, true));
  CHECK(companion.use_count() == 2);
  CHECK(memory.unmapped(0x1000, 0x100) == 0);
  CHECK(companion.use_count() == 1);
}
