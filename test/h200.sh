#!/bin/sh
# Tests and benchmarks for a machine with a GPU. Needs python3, nvcc and, except for `record`, node
# and the built tree with its dist/ directories.
#   test/h200.sh record | conformance | container | bench | sharing [--only NAME,...] | gang
#                | account | check | nvml | images | suspend | oversubscribe
#                | move | checkpoint | frameworks | limits | all
# Results and logs are in $OUT (default build/h200). `sharing --only concurrent` covers concurrent
# mode, `--only windows` all rows that the length of windows changes; `gang` and `move` need two
# GPUs, `checkpoint` CRIU. At its end `sharing` prints the rows of docs/performance.md. `limits`,
# also the end of `all`, prints one table of the figures in $OUT that have a limit.
set -u
cd "$(dirname "$0")/.." || exit 1
OUT=${OUT:-$PWD/build/h200}
BUILD=${BUILD:-/tmp/nvidia-virtual-h200}
mkdir -p "$OUT" "$BUILD"
failed=0

# step NAME SECONDS COMMAND...: runs it for at most SECONDS, logs its output, and continues in any
# case.
step() {
  name=$1
  seconds=$2
  shift 2
  echo "== $name"
  timeout -k 5 "$seconds" "$@" >"$OUT/$name.log" 2>&1
  status=$?
  tail -n 40 "$OUT/$name.log"
  if [ $status -ne 0 ]; then
    echo "== $name failed with status $status; the whole log is $OUT/$name.log"
    failed=1
  fi
}

# `conformance` also compares with the new recordings in this tree.
record() {
  step record 400 python3 test/conformance/record.py record \
    "$BUILD/conformance" "$OUT/recordings.tar"
  [ -f "$OUT/recordings.tar" ] && tar -xf "$OUT/recordings.tar" -C test/conformance/recordings
}
conformance() {
  step conformance 400 node test/dist/conformance/main.js --build "$BUILD/conformance" \
    --modes native,real,simulated --jobs 6 --json "$OUT/conformance.json"
  step synchronous 300 node test/dist/conformance/main.js --build "$BUILD/conformance" \
    --modes real,simulated --synchronous --jobs 6
}
# kube-apiserver is too large for the archive. `container --show PATH` if python3 is in a separate
# file system.
container() {
  step container 300 node test/dist/container/main.js --backend real --api played "$@"
}
# A benchmark: its name, seconds, script and arguments.
measure() {
  name=$1 seconds=$2 script=$3
  shift 3
  step "$name" "$seconds" python3 "test/bench/$script" --build "$BUILD/bench" \
    --json "$OUT/$name.json" "$@"
}
bench() { measure bench 400 h200.py; }
sharing() { measure sharing 1800 sharing.py "$@"; }
gang() { measure gang 300 sharing.py --only gang "$@"; }
account() { measure account 200 account.py; }
check() { measure check 120 second_check.py; }
nvml() { measure nvml 200 nvml.py "$@"; }
images() { measure images 150 images.py; }
suspend() { measure suspend 900 suspend.py "$@"; }
# Needs 220 GiB of host memory.
oversubscribe() { measure oversubscribe 900 oversubscribe.py "$@"; }
move() { measure move 300 move.py "$@"; }
checkpoint() { measure checkpoint 300 checkpoint.py "$@"; }
frameworks() {
  step frameworks 1800 python3 test/bench/frameworks.py --json "$OUT/frameworks.json" "$@"
}
limits() { python3 test/bench/limits.py "$OUT" || failed=1; }

case "${1:-}" in
  record | conformance | container | bench | sharing | gang | account | check | nvml | images | \
    suspend | oversubscribe | move | checkpoint | frameworks | limits)
    "$@" ;;
  all) record; conformance; container; bench; sharing; account; check; nvml; images; suspend
    oversubscribe; frameworks; limits ;;
  *)
    sed -n '2,10s/^# //p' "$0"
    exit 2
    ;;
esac
exit $failed
