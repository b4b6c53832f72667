#!/bin/sh
# Starts a program in a container with this machine's root file system, without NVIDIA's driver and
# this project, and with the result of Allocate. test/container starts it in separate namespaces.
#   enter.sh PLACE PROGRAM [ARGUMENTS...]
# PLACE is an empty directory. Lists in the environment, one entry per line:
#   MOUNTS  mounts of Allocate: HOST-PATH CONTAINER-PATH
#   HIDDEN  directories of the host that are empty in the container
#   SHOWN   mounts of the host that stay visible
set -eu
place=$1
shift
mount --make-rprivate /
mount -t tmpfs tmpfs "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/root"
root=$place/root

# The driver's libraries and tools, wherever the loader would find them. They are deleted in the
# upper layer, which the host does not see.
ldconfig -p | sed -n 's|.*=> \(.*\)/[^/]*$|\1|p' | sort -u | while read -r directory; do
  rm -f "$root$directory"/libcuda.so* "$root$directory"/libnvidia-* "$root$directory"/libnvcuvid.so*
done
rm -f "$root"/usr/bin/nvidia-*

echo "$SHOWN" | while read -r path; do
  [ -z "$path" ] && continue
  mkdir -p "$root$path"
  mount --rbind "$path" "$root$path"
  mount -o remount,bind,ro "$root$path"
done

echo "$MOUNTS" | while read -r from to; do
  if [ -d "$from" ]; then
    mkdir -p "$place/mounts$to"
  else
    mkdir -p "$place/mounts${to%/*}"
    touch "$place/mounts$to"
  fi
  mount --bind "$from" "$place/mounts$to"
  mount -o remount,bind,ro "$place/mounts$to"
done

for path in /run /tmp /var/lib /sys /dev $HIDDEN; do
  mkdir -p "$root$path"
  mount -t tmpfs tmpfs "$root$path"
done
mount -t proc proc "$root/proc"
mkdir -p "$root/sys/devices/system" "$root/dev/shm"
mount --bind /sys/devices/system "$root/sys/devices/system"
mount -o remount,bind,ro "$root/sys/devices/system"
for node in null zero full random urandom tty; do
  touch "$root/dev/$node"
  mount --bind "/dev/$node" "$root/dev/$node"
done
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"

# Last, because one of these directories may be inside an emptied one.
echo "$MOUNTS" | while read -r from to; do
  if [ -d "$from" ]; then
    mkdir -p "$root$to"
  else
    mkdir -p "$root${to%/*}"
    rm -f "$root$to"
    touch "$root$to"
  fi
  mount --move "$place/mounts$to" "$root$to"
done

mkdir -p "$root/.host"
cd "$root"
pivot_root . .host
umount -l /.host
rmdir /.host
cd /
# As root without capabilities, as in a container whose cgroup has no devices.
exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs -- "$@"
