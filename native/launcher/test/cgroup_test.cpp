#include "native/launcher/cgroup.h"

#include <doctest/doctest.h>

using namespace launcher;

namespace {

const std::string kPod = "0b6f6c5e-1111-4222-8333-944444444444";
const std::string kContainer(64, 'a');

TEST_CASE("the cgroup of a worker is in that of its pod") {
  // cgroupfs, systemd, cgroups of the container beneath its own, a node that is a container.
  CHECK(workerCgroup("/kubepods/burstable/pod" + kPod + "/" + kContainer, kPod) ==
        "/kubepods/burstable/pod" + kPod + "/nvidia-virtual");
  const std::string slice =
      "/kubepods.slice/kubepods-burstable.slice/"
      "kubepods-burstable-pod0b6f6c5e_1111_4222_8333_944444444444.slice";
  CHECK(workerCgroup(slice + "/cri-containerd-" + kContainer + ".scope", kPod) ==
        slice + "/nvidia-virtual");
  CHECK(workerCgroup(slice + "/crio-" + kContainer + ".scope/container/init.scope", kPod) ==
        slice + "/nvidia-virtual");
  CHECK(workerCgroup("/docker/" + kContainer + "/kubelet" + slice + "/x", kPod) ==
        "/docker/" + kContainer + "/kubelet" + slice + "/nvidia-virtual");
  // Cgroups that a container made, and names that have a pod's name as a part.
  CHECK(workerCgroup("/kubepods/pod" + kPod + "/x/pod" + kPod + "/y", kPod) ==
        "/kubepods/pod" + kPod + "/nvidia-virtual");
  CHECK(workerCgroup(slice + "/x.scope" + slice + "/y", kPod) == slice + "/nvidia-virtual");
  CHECK(workerCgroup("/xpod" + kPod + "/pod" + kPod + "0/pod" + kPod, kPod) ==
        "/xpod" + kPod + "/pod" + kPod + "0/pod" + kPod + "/nvidia-virtual");
  CHECK(workerCgroup("/system.slice/kubepods-pod" + kPod + ".slice:cri-containerd:x/z", kPod) ==
        "/system.slice/kubepods-pod" + kPod + ".slice:cri-containerd:x/nvidia-virtual");
  CHECK(workerCgroup("/user.slice", kPod).empty());
  CHECK(workerCgroup("/kubepods/pod" + kPod + "/x", "").empty());
}

TEST_CASE("the cgroup that pays for memory is in the hierarchy of its controller, else in v2") {
  CHECK(memoryCgroup("9:name=systemd:/s\n4:memory,hugetlb:/m\n1:cpu:/c\n0::/v2\n") == "/m");
  CHECK(memoryCgroup("0::/nvidia-virtual\n") == "/nvidia-virtual");
  CHECK(memoryCgroup("0::/v2\n3:memory_recursive:/x\n") == "/v2");
  CHECK(memoryCgroup("").empty());
}

TEST_CASE("a cgroup mount matches the membership of its controllers") {
  const auto mounts = parseMounts(
      "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nosuid 0 0\n"
      "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n"
      "cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n"
      "proc /proc proc rw 0 0\n");
  CHECK(mounts.size() == 3);
  const auto lines = parseMemberships("4:cpu,cpuacct:/a\n1:name=systemd:/b:c\n0::/d\n");
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].path == "/b:c");
  CHECK(matches(mounts[1], lines[0]));
  CHECK(matches(mounts[2], lines[1]));
  CHECK(matches(mounts[0], lines[2]));
  CHECK(!matches(mounts[0], lines[0]));
  CHECK(!matches(mounts[1], lines[1]));
  CHECK(!matches(mounts[1], lines[2]));
  CHECK(!matches(mounts[2], lines[0]));
}

}  // namespace
