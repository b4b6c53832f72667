#include "native/worker/memory/movable_memory.h"

#include <algorithm>
#include <iterator>

#include "native/worker/memory/device_handle.h"
#include "native/worker/session/in_context.h"

namespace worker {

namespace {

/// Requests of up to 1 MiB share pages, as the driver's do.
constexpr std::uint64_t kLargestSmall = std::uint64_t{1} << 20;
constexpr std::uint64_t kUnit = 512;
constexpr std::size_t kWidest = 0x7fffffff;  ///< row of cuMemAllocPitch, in bytes
/// An address that no memory has. The driver refuses it with the error that it has for the context.
constexpr CUdeviceptr kNowhere = 1;
/// Numbers of allocations do not meet those that the driver gives.
constexpr std::uint64_t kFirstId = std::uint64_t{1} << 48;
constexpr CUmemAllocationHandleType kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

constexpr std::uint64_t wholeUnits(std::uint64_t bytes) {
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

constexpr std::uint64_t wholePages(std::uint64_t bytes) {
  return (bytes + FreeRanges::kPage - 1) / FreeRanges::kPage * FreeRanges::kPage;
}

constexpr CUdeviceptr pageOf(CUdeviceptr address) {
  return address / FreeRanges::kPage * FreeRanges::kPage;
}

CUmemAllocationProp propertiesOf(CUdevice device) {
  CUmemAllocationProp properties = memoryOf(device);
  properties.requestedHandleTypes = kFile;
  return properties;
}

/// The entry of a map whose key is the last one not beyond the address; end() if there is none.
template <class Map>
auto lastUpTo(Map& map, CUdeviceptr address) {
  const auto after = map.upper_bound(address);
  return after == map.begin() ? map.end() : std::prev(after);
}

}  // namespace

MovableMemory::~MovableMemory() {
  const std::map<CUdeviceptr, Block> blocks = blocks_;
  for (const auto& [begin, block] : blocks)
    if (block.handle != 0) end(begin, block);
}

CUresult MovableMemory::here(Here* here) const {
  CUcontext current = nullptr;
  if (const CUresult status = below_.cuCtxGetCurrent(&current); status != CUDA_SUCCESS)
    return status;
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  here->owner = owner_(current);
  return below_.cuCtxGetDevice(&here->device);
}

/// The driver's cuMemFree of no memory fails as any allocation would: if the context is broken, or
/// a capture forbids the call.
CUresult MovableMemory::allocate(CUdeviceptr* address, std::size_t bytes) {
  Here here;
  if (const CUresult status = this->here(&here); status != CUDA_SUCCESS) return status;
  if (const CUresult status = below_.cuMemFree_v2(0); status != CUDA_SUCCESS) return status;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > ~std::uint64_t{0} - FreeRanges::kPage) return CUDA_ERROR_OUT_OF_MEMORY;
  if (exact_) return allocateExact(here, bytes, address);
  if (bytes <= kLargestSmall) return allocateSmall(here, bytes, address);
  CUdeviceptr begin = 0;
  if (const CUresult status = make(here, bytes, &begin); status != CUDA_SUCCESS) return status;
  const std::lock_guard lock(mutex_);
  add(here, begin, bytes, begin);
  *address = begin;
  return CUDA_SUCCESS;
}

/// Two threads may both make a page; the second one stays for later requests.
CUresult MovableMemory::allocateSmall(const Here& here, std::uint64_t bytes, CUdeviceptr* address) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (const CUdeviceptr begin = free_[here.owner].take(wholeUnits(bytes)); begin != 0) {
        count(add(here, begin, bytes, pageOf(begin)));
        *address = begin;
        return CUDA_SUCCESS;
      }
    }
    CUdeviceptr page = 0;
    if (const CUresult status = make(here, FreeRanges::kPage, &page); status != CUDA_SUCCESS)
      return status;
    const std::lock_guard lock(mutex_);
    const auto made = blocks_.find(page);
    if (made == blocks_.end()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    made->second.shared = true;
    free_[here.owner].addPage(page);
    small_[here.device].pages += FreeRanges::kPage;
  }
}

/// Memory of the driver's cuMemAlloc is a block of its own.
CUresult MovableMemory::allocateExact(const Here& here, std::uint64_t bytes, CUdeviceptr* address) {
  CUdeviceptr begin = 0;
  if (const CUresult status = below_.cuMemAlloc_v2(&begin, bytes); status != CUDA_SUCCESS)
    return status;
  const std::lock_guard lock(mutex_);
  Entry& entry = add(here, begin, bytes, begin);
  blocks_[begin] = {.bytes = bytes,
                    .device = here.device,
                    .owner = here.owner,
                    .allocation = entry.allocation.id};
  if (bytes <= kLargestSmall) count(entry);
  *address = begin;
  return CUDA_SUCCESS;
}

std::uint64_t MovableMemory::pitchedBytes(std::size_t width, std::size_t height) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  std::uint64_t bytes = 0;
  const bool fits = width <= kMost - kUnit &&
                    !__builtin_mul_overflow(wholeUnits(width), std::uint64_t{height}, &bytes);
  return fits ? bytes : kMost;
}

CUresult MovableMemory::allocatePitched(CUdeviceptr* address, std::size_t* pitch, std::size_t width,
                                        std::size_t height, unsigned element) {
  const bool valid = pitch != nullptr && width != 0 && height != 0 && width <= kWidest &&
                     (element == 4 || element == 8 || element == 16);
  if (!valid) return allocate(nullptr, 0);
  const CUresult status = allocate(address, pitchedBytes(width, height));
  if (status == CUDA_SUCCESS) *pitch = wholeUnits(width);
  return status;
}

/// The driver may give an address again while the end of its former context is not known here.
MovableMemory::Entry& MovableMemory::add(const Here& here, CUdeviceptr begin, std::uint64_t bytes,
                                         CUdeviceptr block) {
  if (const auto former = entries_.extract(begin); !former.empty()) uncount(former.mapped());
  return entries_[begin] = {.allocation = {.begin = begin,
                                           .bytes = bytes,
                                           .id = kFirstId + lastId_++,
                                           .context = here.owner},
                            .block = block,
                            .device = here.device};
}

/// Counts a small request, and the pages of the driver's that it is the first one in.
void MovableMemory::count(Entry& entry) {
  entry.small = true;
  Small& small = small_[entry.device];
  small.requests += wholeUnits(entry.allocation.bytes);
  if (!exact_) return;
  const CUdeviceptr end = entry.allocation.begin + entry.allocation.bytes;
  for (CUdeviceptr page = pageOf(entry.allocation.begin); page < end; page += FreeRanges::kPage)
    if (driverPages_[page]++ == 0) small.pages += FreeRanges::kPage;
}

/// The opposite of count(); nothing for a request that is not small.
void MovableMemory::uncount(const Entry& entry) {
  if (!entry.small) return;
  Small& small = small_[entry.device];
  small.requests -= wholeUnits(entry.allocation.bytes);
  if (!exact_) return;
  const CUdeviceptr end = entry.allocation.begin + entry.allocation.bytes;
  for (CUdeviceptr page = pageOf(entry.allocation.begin); page < end; page += FreeRanges::kPage) {
    if (--driverPages_.at(page) > 0) continue;
    driverPages_.erase(page);
    small.pages -= FreeRanges::kPage;
  }
}

/// Makes a block for the owner. It is listed before it is mapped: a program must not name it as a
/// mapping of its own.
CUresult MovableMemory::make(const Here& here, std::uint64_t bytes, CUdeviceptr* begin) {
  Block block{.bytes = wholePages(bytes), .device = here.device, .owner = here.owner};
  if (const CUresult status = create(block); status != CUDA_SUCCESS) return status;
  const CUresult status = map(block, begin);
  if (status != CUDA_SUCCESS) below_.cuMemRelease(block.handle);
  return status;
}

/// If the GPU is full, the page that was kept for small requests goes first.
CUresult MovableMemory::create(Block& block) {
  const CUmemAllocationProp properties = propertiesOf(block.device);
  const CUresult status = below_.cuMemCreate(&block.handle, block.bytes, &properties, 0);
  if (status != CUDA_ERROR_OUT_OF_MEMORY || !endKept(block.owner)) return status;
  return below_.cuMemCreate(&block.handle, block.bytes, &properties, 0);
}

/// Ends the page that is kept for small requests. False if there is none.
bool MovableMemory::endKept(CUcontext owner) {
  CUdeviceptr page = 0;
  Block kept;
  {
    const std::lock_guard lock(mutex_);
    if ((page = free_[owner].take(FreeRanges::kPage)) == 0) return false;
    kept = blocks_.at(page);
    blocks_.at(page).leaving = true;
    small_[kept.device].pages -= FreeRanges::kPage;
  }
  end(page, kept);
  return true;
}

void MovableMemory::trim() {
  pools_.trim();
  std::vector<CUcontext> owners;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [owner, ranges] : free_) owners.push_back(owner);
  }
  for (CUcontext const owner : owners) endKept(owner);
}

/// Maps the handle of a block at addresses of its own, and lists it.
CUresult MovableMemory::map(const Block& block, CUdeviceptr* begin) {
  CUresult status = below_.cuMemAddressReserve(begin, block.bytes, 0, 0, 0);
  if (status != CUDA_SUCCESS) return status;
  {
    const std::lock_guard lock(mutex_);
    blocks_.emplace(*begin, block);
  }
  status =
      mapHandle(below_, *begin, block.bytes, block.handle, propertiesOf(block.device).location);
  if (status == CUDA_SUCCESS) return status;
  {
    const std::lock_guard lock(mutex_);
    blocks_.erase(*begin);
  }
  below_.cuMemAddressFree(*begin, block.bytes);
  return status;
}

/// No work uses the block any more. It is listed until it is unmapped.
void MovableMemory::end(CUdeviceptr begin, const Block& block) {
  below_.cuMemUnmap(begin, block.bytes);
  below_.cuMemRelease(block.handle);
  {
    const std::lock_guard lock(mutex_);
    blocks_.erase(begin);
  }
  below_.cuMemAddressFree(begin, block.bytes);
}

/// The first one is never freed, so that the driver keeps the page of the others.
void MovableMemory::contextMade(CUcontext context) {
  const InContext current(below_, context);
  CUdeviceptr first = 0;
  if (current.status() == CUDA_SUCCESS) below_.cuMemAlloc_v2(&first, 1);
  keepSpare(context);
}

void MovableMemory::keepSpare(CUcontext context) {
  const std::lock_guard one(spareMutex_);
  {
    const std::shared_lock lock(mutex_);
    const auto spares = spares_.find(context);
    if (spares != spares_.end() && !spares->second.empty()) return;
  }
  const InContext current(below_, context);
  CUdeviceptr spare = 0;
  if (current.status() != CUDA_SUCCESS || below_.cuMemAlloc_v2(&spare, 1) != CUDA_SUCCESS) return;
  const std::lock_guard lock(mutex_);
  spares_[context].push_back(spare);
}

/// By freeing memory of the driver's own.
CUresult MovableMemory::await(CUcontext context) {
  CUresult status = below_.cuCtxPushCurrent_v2(context);
  if (status != CUDA_SUCCESS) return status;
  status = awaitHere(context);
  CUcontext popped = nullptr;
  below_.cuCtxPopCurrent_v2(&popped);
  return status;
}

CUresult MovableMemory::awaitHere(CUcontext context) {
  CUdeviceptr spare = 0;
  {
    const std::lock_guard lock(mutex_);
    auto& spares = spares_[context];
    if (!spares.empty()) spare = spares.back(), spares.pop_back();
  }
  if (spare == 0) {
    const CUresult status = below_.cuMemAlloc_v2(&spare, 1);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) return below_.cuCtxSynchronize();
    if (status != CUDA_SUCCESS) return status;
  }
  const CUresult status = below_.cuMemFree_v2(spare);
  if (status == CUDA_SUCCESS) return status;
  const std::lock_guard lock(mutex_);
  spares_[context].push_back(spare);
  return status;
}

/// No work uses the memory any more.
void MovableMemory::giveBack(const Entry& entry) {
  Block block;
  {
    const std::lock_guard lock(mutex_);
    uncount(entry);
    const auto found = blocks_.find(entry.block);
    if (found == blocks_.end()) return;       // its context has ended
    if (exact_ && !isBlockOf(entry)) return;  // the driver has given the address again
    if (found->second.handle == 0) return void(blocks_.erase(found));  // the driver has freed it
    block = found->second;
    if (block.shared) {
      const std::uint64_t bytes = wholeUnits(entry.allocation.bytes);
      if (!free_[block.owner].give(entry.allocation.begin, bytes)) return;
      small_[block.device].pages -= FreeRanges::kPage;
    }
    found->second.leaving = true;
  }
  end(entry.block, block);
}

/// Addresses that begin no allocation are the driver's to judge.
CUresult MovableMemory::free(CUdeviceptr address) {
  const auto memory = find(address);
  if (pools_.find(address)) return freePooled(address);
  const auto parted = part(address);
  if (!parted)
    return below_.cuMemFree_v2(place(address, 1) == Place::elsewhere ? address : kNowhere);
  awaitSubmissions();
  const CUresult status = exact_ ? below_.cuMemFree_v2(address) : await(memory->context);
  if (status != CUDA_SUCCESS) return restore(*parted), status;
  release(*parted);
  if (!exact_) keepSpare(memory->context);
  return status;
}

/// cuMemFree of memory of a pool. It does not wait, as the driver's does not (H200): the program
/// has waited for the work. To free nothing fails where that would: in a capture, behind a fault.
CUresult MovableMemory::freePooled(CUdeviceptr address) {
  if (const CUresult status = below_.cuMemFree_v2(0); status != CUDA_SUCCESS) return status;
  return pools_.free(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// The request counts until release(), because the stream may come to the free later.
std::optional<CUresult> MovableMemory::freeBehind(CUdeviceptr address, CUstream stream,
                                                  Parted* freed) {
  if (!exact_) return std::nullopt;
  const auto parted = part(address);
  if (!parted) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = below_.cuMemFreeAsync(address, stream);
  if (status != CUDA_SUCCESS) return restore(*parted), status;
  *freed = *parted;
  const std::lock_guard lock(mutex_);
  const auto entry = parted_.find(*parted);
  if (entry != parted_.end() && isBlockOf(entry->second)) blocks_.erase(address);
  return status;
}

std::optional<MovableMemory::Parted> MovableMemory::part(CUdeviceptr address) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(address);
  if (found == entries_.end() || blocks_.at(found->second.block).opened != 0) return std::nullopt;
  const Entry entry = found->second;
  entries_.erase(found);
  parted_.emplace(entry.allocation.id, entry);
  return entry.allocation.id;
}

void MovableMemory::awaitSubmissions() { const std::lock_guard lock(submissions_); }

/// The opposite of part().
void MovableMemory::restore(Parted parted) {
  const std::lock_guard lock(mutex_);
  const auto found = parted_.extract(parted);
  if (!found.empty()) entries_.emplace(found.mapped().allocation.begin, found.mapped());
}

void MovableMemory::release(Parted parted) {
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = parted_.extract(parted);
    if (found.empty()) return;  // its context has ended
    entry = found.mapped();
  }
  giveBack(entry);
}

std::vector<CUdeviceptr> MovableMemory::contextEnded(CUcontext context) {
  pools_.contextEnded(context);
  std::vector<CUdeviceptr> addresses;
  std::map<CUdeviceptr, Block> ended;
  {
    const std::lock_guard lock(mutex_);
    const auto isOwned = [&](const auto& each) {
      const Entry& entry = each.second;
      if (entry.allocation.context != context) return false;
      uncount(entry);
      return true;
    };
    for (const auto& [begin, entry] : entries_)
      if (entry.allocation.context == context) addresses.push_back(begin);
    std::erase_if(entries_, isOwned);
    std::erase_if(parted_, isOwned);
    for (const auto& [begin, block] : blocks_)
      if (block.owner == context && !block.leaving) ended.emplace(begin, block);
    for (const auto& [begin, block] : ended) {
      if (block.shared) small_[block.device].pages -= FreeRanges::kPage;
      if (block.handle == 0)
        blocks_.erase(begin);  // the driver has freed its own
      else
        blocks_.at(begin).leaving = true;
    }
    free_.erase(context);
    spares_.erase(context);
    std::erase_if(openings_, [&](const auto& each) { return each.first.second == context; });
  }
  for (const auto& [begin, block] : ended)
    if (block.handle != 0) end(begin, block);
  return addresses;
}

/// Whether the block of the driver's memory is still that of the entry.
bool MovableMemory::isBlockOf(const Entry& entry) const {
  const auto found = blocks_.find(entry.block);
  return found != blocks_.end() && found->second.allocation == entry.allocation.id;
}

const MovableMemory::Entry* MovableMemory::entryOf(CUdeviceptr address) const {
  const auto found = lastUpTo(entries_, address);
  const bool inside = found != entries_.end() &&
                      address - found->second.allocation.begin < found->second.allocation.bytes;
  return inside ? &found->second : nullptr;
}

bool MovableMemory::touches(CUdeviceptr address, std::uint64_t bytes) const {
  const std::shared_lock lock(mutex_);
  const auto after = blocks_.lower_bound(address);
  return isInBlock(address) || (after != blocks_.end() && after->first - address < bytes);
}

bool MovableMemory::isInBlock(CUdeviceptr address) const {
  const auto found = lastUpTo(blocks_, address);
  return found != blocks_.end() && address - found->first < found->second.bytes;
}

MovableMemory::Place MovableMemory::place(CUdeviceptr address, std::uint64_t bytes) const {
  const auto placeIn = [&](CUdeviceptr begin, std::uint64_t size) {
    return bytes <= begin + size - address ? Place::inside : Place::outside;
  };
  if (const auto pooled = pools_.find(address)) return placeIn(pooled->begin, pooled->bytes);
  const std::shared_lock lock(mutex_);
  if (const Entry* entry = entryOf(address))
    return placeIn(entry->allocation.begin, entry->allocation.bytes);
  return isInBlock(address) ? Place::outside : Place::elsewhere;
}

std::optional<MovableMemory::Allocation> MovableMemory::find(CUdeviceptr address) const {
  const std::shared_lock lock(mutex_);
  const Entry* entry = entryOf(address);
  return entry == nullptr ? std::nullopt : std::optional(entry->allocation);
}

void MovableMemory::setSynchronous(CUdeviceptr address, bool on) {
  const std::lock_guard lock(mutex_);
  const auto found = lastUpTo(entries_, address);
  if (found != entries_.end()) found->second.allocation.synchronous = on;
}

/// Pages of the driver's may hold more than their bytes: a request that a stream has freed counts
/// until release(), and the driver gives its address again before.
std::uint64_t MovableMemory::slack(std::uint64_t borne) const {
  const std::shared_lock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& [device, small] : small_)
    bytes += std::max(small.pages, small.requests + borne) - (small.requests + borne);
  return bytes;
}

/// The error of the current context, if it is broken. Not asked for during a capture, which the
/// question would invalidate.
CUresult MovableMemory::fault() const {
  return captures_.any() ? CUDA_SUCCESS : below_.cuMemFree_v2(0);
}

CUresult MovableMemory::refusal() const {
  const CUresult status = fault();
  return status != CUDA_SUCCESS ? status : CUDA_ERROR_INVALID_VALUE;
}

CUresult MovableMemory::exportFile(CUdeviceptr begin, int* file, Geometry* geometry) {
  Here unused;
  if (const CUresult status = here(&unused); status != CUDA_SUCCESS) return status;
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(begin);
  if (found == entries_.end()) return CUDA_ERROR_INVALID_VALUE;
  Block& block = blocks_.at(found->second.block);
  if (block.handle == 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (block.opened != 0) return CUDA_ERROR_INVALID_VALUE;
  *geometry = {.offset = begin - found->second.block,
               .bytes = found->second.allocation.bytes,
               .mapped = block.bytes};
  const CUresult status = below_.cuMemExportToShareableHandle(file, block.handle, kFile, 0);
  if (status == CUDA_SUCCESS) block.exported = true;
  return status;
}

bool MovableMemory::holdsMemory() const {
  const std::shared_lock lock(mutex_);
  return !blocks_.empty() || !mapped_.isEmpty() || pools_.reserved() > 0;
}

bool MovableMemory::isShared() const {
  const std::shared_lock lock(mutex_);
  const auto shared = [](const auto& each) {
    return each.second.exported || each.second.opened != 0;
  };
  return std::ranges::any_of(blocks_, shared) || mapped_.isShared();
}

std::vector<MovablePiece> MovableMemory::pieces() {
  const std::lock_guard lock(mutex_);
  std::vector<MovablePiece> pieces;
  for (auto& [begin, block] : blocks_) {
    if (block.handle == 0 || block.exported || block.opened != 0) continue;
    pieces.push_back({.handle = &block.handle,
                      .properties = propertiesOf(block.device),
                      .bytes = block.bytes,
                      .mappings = {{.begin = begin,
                                    .bytes = block.bytes,
                                    .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE}}});
  }
  mapped_.addPieces(pieces);
  pools_.addPieces(pieces);
  return pieces;
}

std::optional<CUdeviceptr> MovableMemory::openAgain(const Name& name) {
  Here here;
  if (this->here(&here) != CUDA_SUCCESS) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto known = openings_.find({name, here.owner});
  if (known == openings_.end()) return std::nullopt;
  ++blocks_.at(entries_.at(known->second).block).opened;
  return known->second;
}

CUresult MovableMemory::open(const Name& name, int file, const Geometry& geometry,
                             CUdeviceptr* address) {
  Here here;
  if (const CUresult status = this->here(&here); status != CUDA_SUCCESS) return status;
  if (const CUresult status = fault(); status != CUDA_SUCCESS) return status;
  Block block{.bytes = geometry.mapped, .device = here.device, .owner = here.owner, .opened = 1};
  CUresult status = below_.cuMemImportFromShareableHandle(
      &block.handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)), kFile);
  if (status != CUDA_SUCCESS) return status;
  CUdeviceptr begin = 0;
  if ((status = map(block, &begin)) != CUDA_SUCCESS)
    return below_.cuMemRelease(block.handle), status;
  const std::lock_guard lock(mutex_);
  const Entry& entry = add(here, begin + geometry.offset, geometry.bytes, begin);
  blocks_.at(begin).allocation = entry.allocation.id;
  openings_.emplace(Opening{name, here.owner}, begin + geometry.offset);
  *address = begin + geometry.offset;
  return CUDA_SUCCESS;
}

CUresult MovableMemory::close(CUdeviceptr address) {
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(address);
    if (found == entries_.end() || blocks_.at(found->second.block).opened == 0)
      return CUDA_ERROR_INVALID_VALUE;
    Block& block = blocks_.at(found->second.block);
    if (block.opened > 1) return --block.opened, CUDA_SUCCESS;
    entry = found->second;
    entries_.erase(found);
    std::erase_if(openings_, [&](const auto& each) { return each.second == address; });
  }
  const CUresult status = await(entry.allocation.context);
  giveBack(entry);
  keepSpare(entry.allocation.context);
  return status;
}

}  // namespace worker
