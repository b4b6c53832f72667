#!/bin/sh
# Packs the built tree and Node for h200.sh, for a machine with a GPU but without Node and network.
#   test/pack.sh ARCHIVE.tar.xz     after `npm run build`
# There: tar -xf ARCHIVE.tar.xz in a checkout of the same commit, and PATH=$PWD/build/bin:$PATH
# test/h200.sh ...
set -eu
archive=${1:?"$(sed -n '3s/^# *//p' "$0")"}
cd "$(dirname "$0")/.."
mkdir -p build/bin
cp "$(readlink -f "$(command -v node)")" build/bin/node
{
  echo build/bin/node
  find . -name dist -type d -not -path '*/node_modules/*' -prune
  find build/release/native build/release/interposer -not -path '*/criu/*' \
    \( -name 'nvidia-virtual*' -o -name '*.so.*' -o -name libcuda.so -o -name libnvidia-ml.so -o \
      -name lying_worker \) \
    \( -type f -o -type l \)
  for package in llama_cpp diskcache; do
    [ ! -d build/llama/$package ] || find build/llama/$package -type f -o -type l
  done
  npm ls --omit=dev --all --parseable | sed -n "s|^$PWD/node_modules/|node_modules/|p"
  find node_modules/@nvidia-virtual -type l
} | tar --create --file "$archive" --use-compress-program 'xz -T0' \
  --exclude '*.map' --exclude '*.d.ts' --exclude '*.o' --files-from -
du -h "$archive"
