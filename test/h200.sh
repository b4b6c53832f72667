#!/bin/sh
# What is proved on a machine with a GPU. Needs python3, nvcc and, but for `record`, node and the built tree with its dist/ directories.
#   test/h200.sh record | conformance | container | bench | sharing [--only NAME,...] | gang | account | frameworks | all
# Results and logs go to $OUT (default build/h200). `sharing --only concurrent` is what is about concurrent mode; `gang` needs two GPUs.
set -u
cd "$(dirname "$0")/.." || exit 1
OUT=${OUT:-$PWD/build/h200}
BUILD=${BUILD:-/tmp/nvidia-virtual-h200}
mkdir -p "$OUT" "$BUILD"
failed=0

# step NAME SECONDS COMMAND...: runs it for at most SECONDS, keeps its output in a log, goes on whatever happens.
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

# The new recordings are also what `conformance` compares with in this tree.
record() {
  step record 400 python3 test/conformance/record.py record "$BUILD/conformance" "$OUT/recordings.tar"
  [ -f "$OUT/recordings.tar" ] && tar -xf "$OUT/recordings.tar" -C test/conformance/recordings
}
conformance() { step conformance 550 node test/dist/conformance/main.js --build "$BUILD/conformance" --modes native,real,simulated --jobs 6 --json "$OUT/conformance.json"; }
# kube-apiserver is too large to be carried along. `container --show PATH` where python3 lies in a file system of its own.
container() { step container 300 node test/dist/container/main.js --backend real --api played "$@"; }
bench() { step bench 400 python3 test/bench/h200.py --build "$BUILD/bench" --json "$OUT/bench.json"; }
sharing() { step sharing 580 python3 test/bench/sharing.py --build "$BUILD/bench" --json "$OUT/sharing.json" "$@"; }
gang() { step gang 300 python3 test/bench/sharing.py --build "$BUILD/bench" --json "$OUT/gang.json" --only gang "$@"; }
account() { step account 200 python3 test/bench/account.py --build "$BUILD/bench" --json "$OUT/account.json"; }
frameworks() { step frameworks 580 python3 test/bench/h200.py --frameworks --json "$OUT/frameworks.json"; }

case "${1:-}" in
  record | conformance | container | bench | sharing | gang | account | frameworks) "$@" ;;
  all) record; conformance; container; bench; sharing; account; frameworks ;;
  *)
    sed -n '2,4s/^# //p' "$0"
    exit 2
    ;;
esac
exit $failed
