#include "native/worker/accounts/physical_memory.h"

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

  // A handle's number is given again while the first allocation is still mapped.
  memory.created(5, 500);
  memory.mapped(5, 0x1000, 0x100);
  CHECK(memory.released(5) == std::pair(std::uint64_t{0}, true));
  memory.created(5, 50);
  memory.mapped(5, 0x2000, 0x100);
  CHECK(memory.released(5).first == 0);
  CHECK(memory.unmapped(0x1000, 0x100) == 500 && memory.unmapped(0x2000, 0x100) == 50);

  // A mapping gives its allocation a handle again.
  memory.created(6, 600);
  memory.mapped(6, 0x1000, 0x100);
  CHECK(memory.released(6) == std::pair(std::uint64_t{0}, true));
  memory.retained(7, 0x10ff);
  CHECK(memory.unmapped(0x1000, 0x100) == 0 &&
        memory.released(7) == std::pair(std::uint64_t{600}, true));

  memory.created(3, 300);
  memory.mapped(3, 0x1000, 0x100);
  memory.retained(3, 0x1000);
  CHECK(memory.released(3) == std::pair(std::uint64_t{0}, false));
  memory.created(4, 400);
  memory.mapped(4, 0x1100, 0x100);
  CHECK(memory.released(3).first == 0 && memory.released(4).first == 0);
  CHECK(memory.unmapped(0x1000, 0x200) == 700);  // one unmap may cover several mappings
  CHECK(memory.unmapped(0x1000, 0x200) == 0);
  return wire::test::checkedResult();
}
