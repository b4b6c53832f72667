"""As vLLM sleeps: physical memory is given back, then mapped again at the same address"""
# run: alone

from cuda.bindings import driver
from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
SIZE = 512 << 20


def must(answer):
    result, *values = answer
    assert result == driver.CUresult.CUDA_SUCCESS, result
    return values[0] if values else None


class Mapped:
    """Memory at a reserved address, for torch.as_tensor."""

    def __init__(self, size):
        self.size = size
        self.address = int(must(driver.cuMemAddressReserve(size, 0, 0, 0)))
        self.__cuda_array_interface__ = {
            'shape': (size // 4,),
            'typestr': '<f4',
            'data': (self.address, False),
            'version': 3,
        }

    def wake(self):
        place = driver.CUmemAllocationProp()
        place.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        place.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        place.location.id = 0
        access = driver.CUmemAccessDesc()
        access.location = place.location
        access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        self.handle = must(driver.cuMemCreate(self.size, place, 0))
        must(driver.cuMemMap(self.address, self.size, 0, self.handle, 0))
        must(driver.cuMemSetAccess(self.address, self.size, [access], 1))

    def sleep(self):
        must(driver.cuMemUnmap(self.address, self.size))
        must(driver.cuMemRelease(self.handle))


torch.cuda.init()
x = torch.randn(256, 256, device='cuda')
memory = Mapped(SIZE)
memory.wake()
weights = torch.as_tensor(memory, device='cuda')
weights.copy_(torch.arange(SIZE // 4) % 1001)
awake, _ = torch.cuda.mem_get_info()
kept = weights.cpu().pin_memory()
torch.cuda.synchronize()
memory.sleep()
asleep, _ = torch.cuda.mem_get_info()
product = digest(x @ x)
memory.wake()
weights.copy_(kept)
awake_again, _ = torch.cuda.mem_get_info()
report(
    address_is_kept=weights.data_ptr() == memory.address,
    freed=asleep - awake == SIZE,
    taken_again=asleep - awake_again == SIZE,
    weights=digest(weights[:: 1 << 10]),
    total=float(weights.double().sum()),
    product=product,
)
