// Cgroup v2: a BPF program that the kernel asks before it opens or makes a device.
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "native/launcher/device_filter.h"

namespace launcher {

namespace {

constexpr std::string_view kName = "nvidia_virtual";
/// The kernel's limit for one cgroup.
constexpr std::size_t kMostPrograms = 64;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  bool valid() const { return number_ >= 0; }
  __u32 number() const { return static_cast<__u32>(number_); }

 private:
  int number_;
};

int bpf(int command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

__u64 address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bpf_insn load(__u8 to, std::size_t offset) {
  return {BPF_LDX | BPF_MEM | BPF_W, to, BPF_REG_1, static_cast<__s16>(offset), 0};
}
bpf_insn jumpOver(__s16 count, int condition, __u8 value, std::uint32_t operand) {
  return {static_cast<__u8>(BPF_JMP | condition | BPF_K), value, 0, count,
          static_cast<__s32>(operand)};
}
void answer(std::vector<bpf_insn>& program, int value) {
  program.push_back({BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, value});
  program.push_back({BPF_JMP | BPF_EXIT, 0, 0, 0, 0});
}

/// Permits a kind and an access that are part of those of a device with these numbers.
std::vector<bpf_insn> programFor(const Devices& devices) {
  std::vector<bpf_insn> program = {load(BPF_REG_2, offsetof(bpf_cgroup_dev_ctx, access_type)),
                                   load(BPF_REG_3, offsetof(bpf_cgroup_dev_ctx, major)),
                                   load(BPF_REG_4, offsetof(bpf_cgroup_dev_ctx, minor))};
  for (const Device& device : devices) {
    const std::uint32_t access =
        (device.readable ? BPF_DEVCG_ACC_READ : 0) | (device.writable ? BPF_DEVCG_ACC_WRITE : 0);
    const std::uint32_t permitted = access << 16 | BPF_DEVCG_DEV_CHAR;
    program.push_back(jumpOver(4, BPF_JNE, BPF_REG_3, device.major));
    program.push_back(jumpOver(3, BPF_JNE, BPF_REG_4, device.minor));
    program.push_back(jumpOver(2, BPF_JSET, BPF_REG_2, ~permitted));
    answer(program, 1);
  }
  answer(program, 0);
  return program;
}

/// Before Linux 5.11, the memory of BPF programs counts as locked.
class WithLockedMemory {
 public:
  WithLockedMemory() {
    getrlimit(RLIMIT_MEMLOCK, &before_);
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_MEMLOCK, &none);
  }
  WithLockedMemory(const WithLockedMemory&) = delete;
  WithLockedMemory& operator=(const WithLockedMemory&) = delete;
  ~WithLockedMemory() { setrlimit(RLIMIT_MEMLOCK, &before_); }

 private:
  rlimit before_{};
};

Descriptor give(const std::vector<bpf_insn>& program) {
  const WithLockedMemory limit;
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insn_cnt = static_cast<__u32>(program.size());
  attributes.insns = address(program.data());
  attributes.license = address("Apache-2.0");
  kName.copy(attributes.prog_name, sizeof attributes.prog_name - 1);
  return Descriptor(bpf(BPF_PROG_LOAD, attributes));
}

/// Whether a program is one of ours; its tag is a digest of the instructions.
bool isOurs(const Descriptor& program, std::string& tag) {
  bpf_prog_info about{};
  bpf_attr attributes{};
  attributes.info.bpf_fd = program.number();
  attributes.info.info_len = sizeof about;
  attributes.info.info = address(&about);
  if (bpf(BPF_OBJ_GET_INFO_BY_FD, attributes) != 0) return false;
  tag.assign(reinterpret_cast<const char*>(about.tag), sizeof about.tag);
  return kName == std::string_view(about.name, strnlen(about.name, sizeof about.name));
}

/// Those of ours that are attached to the cgroup.
std::vector<Descriptor> attachedTo(const Descriptor& cgroup) {
  __u32 ids[kMostPrograms] = {};
  bpf_attr query{};
  query.query.target_fd = cgroup.number();
  query.query.attach_type = BPF_CGROUP_DEVICE;
  query.query.prog_ids = address(ids);
  query.query.prog_cnt = kMostPrograms;
  std::vector<Descriptor> found;
  if (bpf(BPF_PROG_QUERY, query) != 0) return found;
  for (const __u32 id : ids) {
    bpf_attr attributes{};
    attributes.prog_id = id;
    Descriptor program(id > 0 ? bpf(BPF_PROG_GET_FD_BY_ID, attributes) : -1);
    std::string tag;
    if (program.valid() && isOurs(program, tag)) found.push_back(std::move(program));
  }
  return found;
}

bool change(int command, const Descriptor& cgroup, const Descriptor& program) {
  bpf_attr attributes{};
  attributes.target_fd = cgroup.number();
  attributes.attach_bpf_fd = program.number();
  attributes.attach_type = BPF_CGROUP_DEVICE;
  if (command == BPF_PROG_ATTACH) attributes.attach_flags = BPF_F_ALLOW_MULTI;
  return bpf(command, attributes) == 0;
}

}  // namespace

std::string filterByProgram(const std::string& directory, const Devices& devices) {
  const std::string failed = "cannot refuse devices to the cgroup " + directory + ": ";
  const Descriptor cgroup(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!cgroup.valid()) return failed + std::strerror(errno);
  const Descriptor program = give(programFor(devices));
  if (!program.valid()) return failed + "no BPF program: " + std::strerror(errno);
  const std::vector<Descriptor> before = attachedTo(cgroup);
  std::string tag, other;
  if (before.size() == 1 && isOurs(program, tag) && isOurs(before.front(), other) && tag == other)
    return {};
  // All attached programs apply. Whoever removes others has attached one of its own before, so the
  // last one stays, even if several processes do this at once.
  if (!change(BPF_PROG_ATTACH, cgroup, program))
    return failed + "its BPF program is not attached: " + std::strerror(errno);
  for (const Descriptor& each : before) change(BPF_PROG_DETACH, cgroup, each);
  return {};
}

}  // namespace launcher
