import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Stand-in for nvidia-cuda-mps-control: it starts, answers and ends like the original and does
 * nothing else. It tests the supervision of the daemon. test/bench/sharing.py tests concurrent
 * kernels on a GPU.
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

/** Creates it in a directory for PATH. @returns its path */
export function makeMpsStandIn(directory: string): string {
  mkdirSync(directory, { recursive: true });
  const file = path.join(directory, 'nvidia-cuda-mps-control');
  writeFileSync(file, SCRIPT);
  chmodSync(file, 0o755);
  return file;
}
