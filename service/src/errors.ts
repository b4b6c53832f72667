import { getSystemErrorMap } from 'node:util';
import { defineErrors } from './error-table.js';

/**
 * Everything that gpu-proxy can refuse or report as failed: one code, one sentence (what happened,
 * to which object, what to do) and the exit status of the command line. docs/errors.md lists the
 * same codes; a test compares the two. A code is never reused for another meaning.
 */
const TABLE = {
  BACKEND_NOT_REAL: [
    125,
    'The real GPU cannot be used: {reason}. Use --backend simulated, or repair the NVIDIA driver.',
  ],
  BUILD_MISSING: [125, '{path} does not exist. The build creates it: run `npm run build` first.'],
  OPTION_VALUE: [2, '{where} is {value}, which is not allowed: give {allowed}.'],
  OPTION_UNKNOWN: [2, '{where} is not an option; the options here are {known}.'],
  OPTION_NEEDS: [2, '{where} requires {needed}.'],
  CONFIGURATION_FILE: [
    2,
    '{where} cannot be read as a configuration: {reason}. Repair it, or choose another file by --config.',
  ],
  CONFIGURATION_WRONG: [2, 'The configuration has {count} mistakes: {problems}'],
  OPTION_OF_SERVE: [
    2,
    '{option} cannot be combined with --socket: the gpu-proxy that serves the socket decides it. Give it to `gpu-proxy serve`.',
  ],
  PROGRAM_MISSING: [127, '{program} was not found{where}. Check the name, or give a path.'],
  PROGRAM_NOT_EXECUTABLE: [126, '{program} is {kind} and cannot be executed. {hint}'],
  PROGRAM_NOT_STARTED: [126, '{program} could not be started: {reason}.'],
  SOCKET_BUSY: [
    125,
    'Another gpu-proxy already serves {path}. Stop it, or choose another --socket.',
  ],
  SOCKET_NOT_MADE: [
    125,
    'The socket {path} cannot be made: {reason}. Choose another place by --socket.',
  ],
  SOCKET_NOT_SERVED: [
    125,
    'No gpu-proxy serves {path}: {reason}. Start one by `gpu-proxy serve --socket {path}`.',
  ],
  SOCKET_PATH_LONG: [
    2,
    'The socket path {path} has {bytes} bytes, more than the {limit} that the system allows. Choose a shorter one by --socket.',
  ],
  HTTP_NOT_SERVED: [
    125,
    'Metrics and health cannot be served at {address}: {reason}. Choose another place by --http.',
  ],
  LOG_NOT_OPENED: [125, 'The log {path} cannot be opened: {reason}. Choose another file by --log.'],
  DIRECTORY_NOT_MADE: [
    125,
    'No private directory can be made in {parent}: {reason}. Set TMPDIR to a directory where you may write.',
  ],
  SESSIONS_FULL: [
    125,
    'The connection of process {pid} was refused: all {limit} sessions of allocation {id} are taken. It works again when one of them ends. Start fewer at a time, or have limits.sessions raised.',
  ],
  WORKER_NOT_STARTED: [125, 'The worker for process {pid} could not be started: {reason}.'],
  OPTION_OF_NODE: [
    2,
    '{option} cannot be combined with {other}: the gpu-proxy that serves there decides it.',
  ],
  OPTION_OF_ALLOCATION: [
    2,
    '{option} cannot be combined with --allocation: it was decided when that was made.',
  ],
  OPTION_OF_A_NODE: [
    2,
    '{option} is for a node, and with --socket gpu-proxy serves one allocation alone. Leave one of the two out.',
  ],
  OPTION_WITHOUT_SOCKET: [
    2,
    '{option} needs --socket: without it gpu-proxy serves a node, which has no allocation of its own. Make one by `gpu-proxy create`.',
  ],
  STATE_BUSY: [
    125,
    'Another gpu-proxy, process {pid}, already serves the state directory {path}. Stop it, or choose another --state.',
  ],
  STATE_NOT_USABLE: [
    125,
    'The state directory {path} cannot be used: {reason}. Choose another by --state, or become a user who may write there.',
  ],
  SPECIFICATION_BROKEN: [
    125,
    '{file} cannot be read: {reason}. What it describes is left as it is; repair the file, or remove its directory.',
  ],
  SPECIFICATION_NEWER: [
    125,
    '{file} is of version {version}, and this gpu-proxy knows {known}. It is left as it is; start the newer gpu-proxy again.',
  ],
  GRANT_BROKEN: [
    125,
    '{file} cannot be read as a grant of version {known}, so the container that has its directory gets no GPU, and no old version of the library is removed. Start the newer gpu-proxy again if there was one; else delete the pod, then {directory}.',
  ],
  ALLOCATION_NOT_SERVED: [
    125,
    'Allocation {id} is not served: {reason} Its running programs continue, new ones get no GPU, and {promised}.',
  ],
  INVENTORY_FAILED: [
    125,
    'The GPUs of this machine cannot be listed: {reason}. Repair the driver, or use --backend simulated.',
  ],
  GPU_UNKNOWN: [
    125,
    'There is no GPU {name} here; there are: {gpus}. Name one of them, or leave the choice to the node.',
  ],
  GPU_MODE: [
    125,
    'GPU {gpu} is used in {mode} mode, and {asked} was asked for. Name another GPU, or leave the choice to the node.',
  ],
  MEMORY_NOT_LEFT: [
    125,
    'GPU {gpu} has {left} left for a quota, and {asked} was asked for: of its {memory}, {quotas} are the quotas of {allocations}, {contexts} their contexts and the new one, {warm} warm workers or the MPS server. Ask for less, or delete an allocation.',
  ],
  SHARE_NOT_LEFT: [
    125,
    'GPU {gpu} has {left} % of its time left for fixed shares, and {asked} % was asked for: {promised} % is promised. Ask for less, or for the policy burst.',
  ],
  NO_GPU_FITS: [125, 'No GPU has {asked} left: {gpus}. Ask for less, or delete an allocation.'],
  WARM_WORKERS_NOT_LEFT: [
    125,
    'GPU {gpu} has no room for {count} warm workers, which hold {warm}: of its {memory}, {promised} are promised to {allocations}. Ask for fewer.',
  ],
  MPS_MISSING: [
    125,
    'GPU {gpu} cannot be in concurrent mode: nvidia-cuda-mps-control is neither in bin beside the driver {driver} nor in PATH. Install it, or set the gpuMode to exclusive.',
  ],
  CONCURRENT_GPUS: [
    125,
    'An allocation in concurrent mode has one GPU, since each has an MPS of its own, and {count} were asked for. Ask for one, or for exclusive mode.',
  ],
  USERS_FULL: [
    125,
    'All {count} users for workers are taken by allocations. Delete an allocation, or give the node a longer range of users.',
  ],
  NODE_NOT_SERVED: [
    125,
    'No gpu-proxy serves the state directory {state}: {reason}. Start one by `gpu-proxy serve --state {state}`.',
  ],
  NODE_FAILED: [
    125,
    'The gpu-proxy that serves the state directory {state} did not answer: {reason}. Its log says more.',
  ],
  ALLOCATION_UNKNOWN: [
    125,
    'No allocation has the id or the name {name}. `gpu-proxy ls` lists all allocations.',
  ],
  ALLOCATION_AMBIGUOUS: [
    125,
    '{allocations} have the name {name}: {ids}. Give the id of the one that you mean.',
  ],
  ALLOCATION_IN_USE: [
    125,
    'Allocation {id} has {sessions} and is not deleted. Let them end by `gpu-proxy drain {id}`, or end them by --force.',
  ],
  KUBECONFIG_MISSING: [
    125,
    'The API server of Kubernetes cannot be found: {reason}. Run in a pod with a service account, name a file in KUBECONFIG, or leave out --kubernetes-enabled.',
  ],
  KUBECONFIG_UNREADABLE: [
    2,
    '{file} cannot be read as a kubeconfig: {reason}. Repair it, or name another file.',
  ],
  SLOT_MEMORY_SMALL: [
    2,
    'GPU {gpu} has {memory}, and each of its {slots} slots would hold {slot}, less than the {least} that a program needs: every slot has a context of {context} beside it, as has each of {warm} warm workers. Lower slotsPerGpu or warmWorkers.',
  ],
  SESSION_REFUSED: [125, 'Process {pid} ({program}) got no GPU: {reason}.'],
  MEMORY_QUOTA_REACHED: [
    125,
    'Process {pid} ({program}) asked for {asked} of GPU memory where {used} of the quota of {limit} were in use, and got CUDA_ERROR_OUT_OF_MEMORY. Let the program use less, or ask for more nvidia-virtual/gpu.',
  ],
  PINNED_MEMORY_REACHED: [
    125,
    'Process {pid} ({program}) asked for {asked} of pinned host memory where all programs of its allocation together may have {limit}, and got CUDA_ERROR_OUT_OF_MEMORY. Let the programs pin less, or have limits.pinnedMemory raised.',
  ],
  HANDLES_REACHED: [
    125,
    'Process {pid} ({program}) asked for one more than the {limit} open handles (streams, events, modules and others) that the processes of its allocation may have together, and got CUDA_ERROR_OUT_OF_MEMORY. Let them destroy what they do not need, or have limits.handles raised.',
  ],
  THREADS_REACHED: [
    125,
    'The CUDA calls of process {pid} ({program}) fail from now on: more than {limit} threads of its allocation used CUDA, which is the most that may. Start the program again with fewer, or have limits.threads raised.',
  ],
  MEMORY_BEYOND_QUOTA: [
    125,
    'The sessions of allocation {id} were ended: according to NVML, its workers held {held} of GPU {gpu}, beyond the quota of {quota} and {provided} for contexts and what the driver takes by itself ({margin} a session). A correct worker prevents that. Keep the log, and look at what the program does before you start it again.',
  ],
  OVERRUN_REACHED: [
    125,
    'The CUDA calls of process {pid} ({program}) fail from now on: its work ran on for {seconds} s after its turn on the GPU while others waited, which is more than overrunLimit allows. Start the program again with shorter kernels, or have overrunLimit raised.',
  ],
  WORKER_DIED: [
    125,
    'The CUDA calls of process {pid} ({program}) fail from now on: {reason}. Start the program again.',
  ],
  CACHE_BEYOND_LIMIT: [
    125,
    'The sessions of allocation {id} were ended and its cache of compiled code was emptied: it grew beyond {limit}, which a correct driver prevents.',
  ],
  REPORT_ENDLESS: [
    125,
    'The CUDA calls of process {pid} ({program}) fail from now on: its worker was ended, since its report grew beyond {limit}, which a correct worker prevents. Look at what the program does before you start it again.',
  ],
  GPU_LOST: [
    125,
    'The driver does not list the GPU any more. See the log of the kernel of the node (Xid), and reset the GPU or restart the node.',
  ],
  GPU_NOT_LISTED: [125, 'The GPUs of the node cannot be listed: {reason}. Repair the driver.'],
  GPU_ARRIVED: [
    125,
    'GPU {gpu} appeared after gpu-proxy started. gpu-proxy ends and must be started again to serve it; programs continue.',
  ],
  GPU_NOT_TAKEN: [
    125,
    'GPU {gpu} appeared after gpu-proxy started, and cannot be used yet: {reason} gpu-proxy retries with backoff; the other GPUs are served.',
  ],
  GPU_STARTS_NOTHING: [
    125,
    'No worker can start on the GPU: {reason}. See the log of the kernel of the node (Xid), and reset the GPU.',
  ],
  HOST_NOT_REACHED: [
    125,
    'Workers cannot be started outside of the container of gpu-proxy: {reason}. It needs the pid namespace of the host and the capabilities SYS_ADMIN, SYS_CHROOT and SYS_PTRACE; or set kubernetes.placement to none.',
  ],
  VERSION_MISSING: [
    125,
    'Version {version} of nvidia-virtual, which the container has, is not installed in {directory}. Delete the pod, so that another one with the present version takes its place.',
  ],
  PEER_SANDBOXED: [
    125,
    'The connection of process {pid} ({program}) was refused: it is a sandbox (gVisor, Kata), whose memory cannot be shared with the GPU worker. Run the pod with the runtime class runc.',
  ],
  PEER_OUTSIDE: [
    125,
    'The connection of process {pid} ({program}) was refused: its cgroup belongs to no pod, and this socket is for the container to which the kubelet gave it. Start the program in that container.',
  ],
  PEER_GONE: [
    125,
    'The connection of process {pid} was refused: the process ended while it was being identified.',
  ],
  PEER_OTHER_POD: [
    125,
    'The connection of process {pid} was refused: allocation {id} is for container {owner} of pod {pod}, and the process is in another pod. Ask for nvidia-virtual/gpu in the pod itself.',
  ],
  PEER_OTHER_CONTAINER: [
    125,
    'The GPU of pod {pod} is for container {owner}, and a process of container {container} asked for it. Ask for nvidia-virtual/gpu in that container too.',
  ],
  POD_NOT_KNOWN: [
    125,
    'The pod {uid} of the program is not known: {reason} Start the program again when the API server knows its pod.',
  ],
  POD_RESOURCES_AWAY: [
    125,
    'The kubelet does not list over {socket} which container has which slots: {reason}. Check that it runs, and that its root directory is the one of kubernetes.kubeletRoot.',
  ],
  SLOTS_OF_ANOTHER: [
    125,
    'Pod {pod} may not use the slots {slots}: the kubelet gave them to pod {holder}. Delete the pod, so that another one with slots of its own takes its place.',
  ],
  SLOTS_NOT_LISTED: [
    125,
    'The kubelet does not list the slots {slots} for one container of pod {pod}. Delete the pod, so that another one takes its place.',
  ],
  SLOTS_NOT_FREE: [
    125,
    'The slots {slots} cannot be used yet: pod {pod} had them before, and its worker {workers} does not end, not even when it is killed. It hangs in the driver: see the log of the kernel of the node (Xid), and reset the GPU or restart the node.',
  ],
  SLOTS_GIVEN_AWAY: [
    125,
    'The kubelet gave the slots {slots} to pod {pod}, and this pod had them before: its programs on the GPU are ended. Delete the pod, so that another one with slots of its own takes its place.',
  ],
  GRANT_NOT_BOUND: [
    125,
    'The GPU of the program could not be made ready: {reason}. Repair that on the node, where the log of gpu-proxy says more; then start the program again.',
  ],
  CONTAINER_NOT_KNOWN: [
    125,
    'The API server does not know yet which container of pod {pod} has the id {id}. Start the program again in a moment.',
  ],
  CONTAINER_ASKS_NOTHING: [
    125,
    'Container {container} of pod {pod} asks for no nvidia-virtual/gpu. Add it to the limits of the container.',
  ],
  POD_REQUEST_WRONG: [125, 'The request of pod {pod} is not valid: {problems}'],
  ASSIGNMENT_WRONG: [
    125,
    'The annotation nvidia-virtual/assigned of pod {pod} does not fit its container {container}: {reason}. Only the scheduler of nvidia-virtual may write it; delete the pod, so that it is scheduled again.',
  ],
  ASSIGNED_GPU_GONE: [
    125,
    'Container {container} was assigned GPU {gpu}, which this node does not have; it has {gpus}. Delete the pod, so that it is scheduled again.',
  ],
  ASSIGNED_GPU_UNHEALTHY: [
    125,
    'Container {container} was assigned GPU {gpu}, which cannot be used: {reason}. Delete the pod, so that it is scheduled again.',
  ],
  NO_SINGLE_GPU: [
    125,
    'Container {container} has {slots} slots, and no single GPU of the node has room for them: {told}. Use the scheduler of nvidia-virtual, which keeps them together, ask for fewer, or spread them by the annotation nvidia-virtual/gpus.',
  ],
  NO_GPUS_TOGETHER: [
    125,
    'Container {container} has {slots} slots over {gpus} GPUs, {each} on each, and the node has no {gpus} with room for them: {told}. Use the scheduler of nvidia-virtual, or ask for fewer.',
  ],
  ALLOCATION_DRAINING: [
    125,
    'The connection of process {pid} was refused: allocation {id} is being drained and takes no new sessions.',
  ],
} as const satisfies Record<string, readonly [number, string]>;

export type ErrorCode = keyof typeof TABLE;

const TEMPLATES = Object.fromEntries(
  Object.entries(TABLE).map(([code, [, template]]) => [code, template]),
) as Record<ErrorCode, string>;

export class ProxyError extends defineErrors('ProxyError', TEMPLATES) {
  /**
   * Exit status of the command line: 2 wrong usage, 125 gpu-proxy itself failed, 126 and 127 as in
   * a shell.
   */
  get exitStatus(): number {
    return TABLE[this.code][0];
  }
}

/**
 * The system's message for a failed system call, without Node's prefix: `no such file or
 * directory`.
 */
export function systemReason(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException;
  return (errno !== undefined && getSystemErrorMap().get(errno)?.[1]) || message;
}
