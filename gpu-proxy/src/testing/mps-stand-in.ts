import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * A process that is started, asked and ended as NVIDIA's nvidia-cuda-mps-control is, and does
 * nothing else: what keeps the daemon running is tried with it. Whether kernels run side by side is
 * tried on a GPU (test/bench/sharing.py).
 */
const SCRIPT = `#!/usr/bin/env python3
import os, socket, sys
path = os.environ["CUDA_MPS_PIPE_DIRECTORY"] + "/control"
control = socket.socket(socket.AF_UNIX)
if sys.argv[1:] == ["-f"]:
    print("Starting control daemon for", os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    if os.path.exists(path): os.unlink(path)
    control.bind(path)
    control.listen()
    while True:
        asking, _ = control.accept()
        command = asking.recv(100).decode().strip()
        asking.sendall(b"\\n")
        asking.close()
        if command == "quit": break
else:
    try: control.connect(path)
    except OSError: sys.exit("Cannot find MPS control daemon process")
    control.sendall(sys.stdin.read().encode())
    control.recv(100)
`;

/** Makes it in a directory for PATH; returns its path. */
export function makeMpsStandIn(directory: string): string {
  mkdirSync(directory, { recursive: true });
  const file = path.join(directory, 'nvidia-cuda-mps-control');
  writeFileSync(file, SCRIPT);
  chmodSync(file, 0o755);
  return file;
}
