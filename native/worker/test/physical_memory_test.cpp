#include "native/worker/physical_memory.h"

#include "wire/test/check.h"

int main() {
  worker::PhysicalMemory memory;
  memory.created(1, 100);
  CHECK(memory.released(1) == std::pair(std::uint64_t{100}, true));
  CHECK(memory.released(1) == std::pair(std::uint64_t{0}, true));

  // What is mapped is not free when its handle is released, and the other way round.
  memory.created(2, 200);
  memory.mapped(2, 0x1000, 0x100);
  memory.mapped(2, 0x5000, 0x100);
  CHECK(memory.released(2).first == 0);
  CHECK(memory.unmapped(0x1000, 0x100) == 0);
  CHECK(memory.unmapped(0x5000, 0x100) == 200);

  memory.created(3, 300);
  memory.retained(3);
  CHECK(memory.released(3) == std::pair(std::uint64_t{0}, false));
  memory.mapped(3, 0x1000, 0x100);
  memory.created(4, 400);
  memory.mapped(4, 0x1100, 0x100);
  CHECK(memory.released(3).first == 0 && memory.released(4).first == 0);
  CHECK(memory.unmapped(0x1000, 0x200) == 700);  // one unmap may cover several mappings
  CHECK(memory.unmapped(0x1000, 0x200) == 0);
  return wire::test::checkedResult();
}
