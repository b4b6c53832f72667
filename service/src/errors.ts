import { getSystemErrorMap } from 'node:util';
import { defineErrors } from './error-table.js';

/**
 * Errors of gpu-proxy: code, exit status, sentence (what happened, to which object, what to do). A
 * test compares them with docs/errors.md. A code is never reused for another meaning.
 */
const TABLE = {
  BACKEND_NOT_REAL: [
    125,
    'The real GPU cannot be used: {reason}. Use --backend simulated, or repair the NVIDIA driver.',
  ],
  BUILD_MISSING: [125, '{path} does not exist. Run `npm run build` first.'],
  OPTION_VALUE: [2, '{where} is {value}, but must be {allowed}.'],
  OPTION_UNKNOWN: [2, '{where} is not an option. The options are {known}.'],
  OPTION_NEEDS: [2, '{where} requires {needed}.'],
  CONFIGURATION_FILE: [
    2,
    '{where} is not a valid configuration: {reason}. Fix it, or set another file with --config.',
  ],
  CONFIGURATION_WRONG: [2, 'The configuration has {count} errors: {problems}'],
  OPTION_OF_SERVE: [
    2,
    '{option} cannot be combined with --socket. Set it for the `gpu-proxy serve` that serves ' +
      'the socket.',
  ],
  PROGRAM_MISSING: [127, '{program} was not found{where}. Check the name, or give a path.'],
  PROGRAM_NOT_EXECUTABLE: [126, '{program} is {kind} and cannot be executed. {hint}'],
  PROGRAM_NOT_STARTED: [126, '{program} could not be started: {reason}.'],
  TRACE_NOT_CREATED: [
    125,
    'The trace {path} cannot be created: {reason}. Set another file with --trace.',
  ],
  SOCKET_BUSY: [
    125,
    'Another gpu-proxy already serves {path}. Stop it, or choose another --socket.',
  ],
  SOCKET_NOT_MADE: [
    125,
    'The socket {path} cannot be created: {reason}. Set another path with --socket.',
  ],
  SOCKET_NOT_SERVED: [
    125,
    'No gpu-proxy serves {path}: {reason}. Start one with `gpu-proxy serve --socket {path}`.',
  ],
  SOCKET_PATH_LONG: [
    2,
    'The socket path {path} has {bytes} bytes; the limit is {limit}. ' +
      'Set a shorter path with --socket.',
  ],
  HTTP_NOT_SERVED: [
    125,
    'Metrics and health cannot be served at {address}: {reason}. Set another address with --http.',
  ],
  LOG_NOT_OPENED: [125, 'The log {path} cannot be opened: {reason}. Set another file with --log.'],
  DIRECTORY_NOT_MADE: [
    125,
    'Cannot create a private directory in {parent}: {reason}. Set TMPDIR to a writable directory.',
  ],
  SESSIONS_FULL: [
    125,
    'The connection of process {pid} was refused: all {limit} sessions of allocation {id} are ' +
      'in use. Wait until one ends, start fewer processes, or raise limits.sessions.',
  ],
  WORKER_NOT_STARTED: [125, 'The worker for process {pid} could not be started: {reason}.'],
  OPTION_OF_NODE: [
    2,
    '{option} cannot be combined with {other}. Set it for the gpu-proxy that serves there.',
  ],
  OPTION_OF_ALLOCATION: [
    2,
    '{option} cannot be combined with --allocation: it is fixed when the allocation is created.',
  ],
  OPTION_OF_A_NODE: [
    2,
    '{option} is an option of a node, but --socket serves a single allocation. ' +
      'Remove one of the two.',
  ],
  OPTION_WITHOUT_SOCKET: [
    2,
    '{option} requires --socket. To create an allocation of a node, use `gpu-proxy create`.',
  ],
  STATE_BUSY: [
    125,
    'Another gpu-proxy, process {pid}, already serves the state directory {path}. ' +
      'Stop it, or set another directory with --state.',
  ],
  STATE_NOT_USABLE: [
    125,
    'The state directory {path} cannot be used: {reason}. ' +
      'Set another with --state, or run as a user who may write there.',
  ],
  SPECIFICATION_BROKEN: [
    125,
    '{file} cannot be read: {reason}. Its directory is left unchanged. ' +
      'Repair the file, or remove the directory.',
  ],
  SPECIFICATION_NEWER: [
    125,
    '{file} has version {version}, but this gpu-proxy supports {known}. ' +
      'The file is left unchanged. Start the newer gpu-proxy again.',
  ],
  GRANT_BROKEN: [
    125,
    '{file} is not a valid grant of version {known}. Its container gets no GPU, ' +
      'and no old library version is removed. Start the newer gpu-proxy again if there was ' +
      'one. Otherwise delete the pod, then {directory}.',
  ],
  ALLOCATION_NOT_SERVED: [
    125,
    'Allocation {id} is not served: {reason} Its running programs continue, ' +
      'new ones get no GPU, and {promised}.',
  ],
  INVENTORY_FAILED: [
    125,
    'The GPUs of this machine cannot be listed: {reason}. ' +
      'Repair the driver, or use --backend simulated.',
  ],
  GPU_UNKNOWN: [
    125,
    'GPU {name} does not exist here. The GPUs are: {gpus}. ' +
      'Name one of them, or let the node choose.',
  ],
  GPU_MODE: [
    125,
    'GPU {gpu} is in {mode} mode, but {asked} was requested. ' +
      'Name another GPU, or let the node choose.',
  ],
  MEMORY_NOT_LEFT: [
    125,
    'GPU {gpu} has {left} left for a quota, but {asked} was requested. ' +
      'Of its {memory}, {quotas} are the quotas of {allocations}, {contexts} are for CUDA ' +
      'contexts including the new one, and {warm} for warm workers or the MPS server. ' +
      'Request less, or delete an allocation.',
  ],
  OVERSUBSCRIPTION_NOT_LEFT: [
    125,
    'GPU {gpu} has {left} left for a quota, but {asked} was requested. It is oversubscribed, so ' +
      'the quotas of its allocations must fit into host memory, too: of {host} by hostMemory, ' +
      '{promised} are promised, and suspended allocations of other GPUs have {lent}. ' +
      'Request less, raise hostMemory, or delete an allocation.',
  ],
  OVERSUBSCRIBED_GPUS: [
    125,
    'An allocation of several GPUs cannot use GPU {gpu}, because it is oversubscribed, and the ' +
      'memory of such an allocation cannot leave. Request one GPU, or GPUs that are not ' +
      'oversubscribed.',
  ],
  OVERSUBSCRIPTION_SLOTS: [
    2,
    'GPU {gpu} has {slots} slots by oversubscription. Each may need a context of {context}, and ' +
      'of its {memory} too little is left for one slot. Lower oversubscription or slotsPerGpu.',
  ],
  OVERSUBSCRIPTION_HOST: [
    2,
    'Oversubscription requires host memory of {needed}, for the memory of all slots, but ' +
      'hostMemory is {limit}. Raise hostMemory, or lower oversubscription.',
  ],
  TURN_NOT_COMING: [
    125,
    'Allocation {id} waits for GPU memory, and no turn will give it any. {reason} ' +
      'End programs of the others, or delete one.',
  ],
  SHARE_NOT_LEFT: [
    125,
    'GPU {gpu} has {left} % of its time left for fixed shares, but {asked} % was requested: ' +
      '{promised} % is reserved. Request less, or use the policy burst.',
  ],
  NO_GPU_FITS: [125, 'No GPU has {asked} left: {gpus}. Request less, or delete an allocation.'],
  WARM_WORKERS_NOT_LEFT: [
    125,
    'GPU {gpu} has no room for {count} warm workers, which need {warm}: ' +
      'of its {memory}, {promised} are reserved for {allocations}. Configure fewer.',
  ],
  MPS_MISSING: [
    125,
    'GPU {gpu} cannot be in concurrent mode: nvidia-cuda-mps-control is neither in bin next to ' +
      'the driver {driver} nor in PATH. Install it, or set gpuMode to exclusive.',
  ],
  CONCURRENT_GPUS: [
    125,
    'An allocation in concurrent mode has one GPU, because each GPU has its own MPS server, ' +
      'but {count} were requested. Request one GPU, or exclusive mode.',
  ],
  USERS_FULL: [
    125,
    'All {count} user ids for workers are in use, {left} of them only by processes of ended ' +
      'allocations. Delete an allocation, end these processes, or configure a larger range of ' +
      'user ids.',
  ],
  NODE_NOT_SERVED: [
    125,
    'No gpu-proxy serves the state directory {state}: {reason}. ' +
      'Start one with `gpu-proxy serve --state {state}`.',
  ],
  NODE_FAILED: [
    125,
    'The gpu-proxy that serves the state directory {state} did not answer: {reason}. See its log.',
  ],
  ALLOCATION_UNKNOWN: [
    125,
    'No allocation has the id or name {name}. `gpu-proxy ls` lists all allocations.',
  ],
  ALLOCATION_AMBIGUOUS: [125, '{allocations} have the name {name}: {ids}. Use an id instead.'],
  ALLOCATION_IN_USE: [
    125,
    'Allocation {id} has {sessions} and is not deleted. ' +
      'Drain it with `gpu-proxy drain {id}`, or end the sessions with --force.',
  ],
  WORK_STILL_RUNNING: [
    125,
    'Allocation {id} is not suspended, because process {pid} ({program}) cannot stop now: ' +
      '{reason}. Nothing has changed. End the process, or try again later.',
  ],
  SUSPENDED_BY_POD: [
    125,
    'Allocation {id} stays suspended, because its pod has the annotation ' +
      'nvidia-virtual/suspended. Remove it: `kubectl gpu-usage resume {pod} -n {namespace}`.',
  ],
  MEMORY_STAYS: [
    125,
    'Allocation {id} is not suspended, because the GPU memory of process {pid} ({program}) ' +
      'cannot leave: {reason}. Nothing has changed. End the process, or try again later.',
  ],
  ARENAS_KEPT: [
    125,
    'The GPU memory of allocation {id} stays on the GPU: its programs keep {kept} of host memory ' +
      'from earlier suspensions, and with {needed} more that is above the limit of its quota, ' +
      '{limit}. Restart its programs.',
  ],
  ALLOCATION_STAYS: [
    125,
    'Allocation {id} does not move to GPU {gpu}: {reason}. Nothing has changed.',
  ],
  PROGRAM_NOT_MOVED: [
    125,
    'Allocation {id} stays on its GPU, because process {pid} ({program}) cannot move to {gpu}: ' +
      '{reason}. {outcome}. End the process, or try again later.',
  ],
  CHECKPOINT_REFUSED: [125, 'Allocation {id} is not written to {directory}: {reason}. {outcome}.'],
  CHECKPOINT_NOT_RESTORED: [
    125,
    'Allocation {id} stays in {directory}: {reason}. Its programs wait as before.',
  ],
  ALLOCATION_IN_FILE: [
    125,
    'Allocation {id} is in {directory}, so it is not resumed. Restore it: ' +
      '`gpu-proxy restore {directory}`.',
  ],
  CHECKPOINT_UNKNOWN: [
    125,
    'No allocation of this node is in {directory}: `gpu-proxy ls` shows which are in a file, and ' +
      'only the node whose programs live on can continue them.',
  ],
  KEY_NOT_WRITTEN: [
    2,
    'The key cannot be written to {file}: {reason}. Choose a file that does not exist, outside ' +
      'of the directory of the checkpoint.',
  ],
  KEY_NOT_READ: [2, 'The key cannot be read from {file}: {reason}.'],
  HOST_MEMORY_NOT_LEFT: [
    125,
    'The GPU memory of allocation {id} stays on the GPU: it needs {needed} of host memory, and ' +
      '{left} are left of the {limit} that hostMemory allows. ' +
      'Resume or delete a suspended allocation, or raise hostMemory.',
  ],
  HOST_MEMORY_PROMISED: [
    125,
    'The GPU memory of allocation {id} stays on the GPU: it needs {needed} of host memory, and ' +
      '{left} are left, because of the {limit} that hostMemory allows, {promised} are promised ' +
      'to oversubscribed GPUs. Resume or delete a suspended allocation of another GPU, or raise ' +
      'hostMemory.',
  ],
  HOST_MEMORY_LOW: [
    125,
    'The GPU memory of allocation {id} stays on the GPU: it needs {needed} of host memory, and ' +
      '{left} are available on the node, of which {reserve} must stay free. ' +
      'End other programs of the node, or resume a suspended allocation.',
  ],
  ARENA_NOT_MADE: [
    125,
    'The GPU memory of allocation {id} stays on the GPU, because {size} of host memory could ' +
      'not be prepared: {reason}. Try again, or suspend with hostMemory set to 0, which takes ' +
      'only GPU time.',
  ],
  MEMORY_NOT_BACK: [
    125,
    'Allocation {id} stays suspended, because the GPU memory of process {pid} ({program}) ' +
      'cannot return to the GPU: {reason}. Nothing is lost. ' +
      'Free GPU memory, then try `gpu-proxy resume {id}` again.',
  ],
  KUBECONFIG_MISSING: [
    125,
    'The Kubernetes API server cannot be found: {reason}. ' +
      'Run in a pod with a service account, set KUBECONFIG, or remove --kubernetes-enabled.',
  ],
  KUBECONFIG_UNREADABLE: [
    2,
    '{file} cannot be read as a kubeconfig: {reason}. Repair it, or name another file.',
  ],
  SLOT_MEMORY_SMALL: [
    2,
    'GPU {gpu} has {memory}. Each of its {slots} slots would hold {slot}, ' +
      'but a program needs at least {least}: each slot and each of {warm} warm workers also ' +
      'needs a context of {context}. Lower slotsPerGpu or warmWorkers, or raise ' +
      'slotMemory.',
  ],
  SESSION_REFUSED: [125, 'Process {pid} ({program}) got no GPU: {reason}.'],
  MEMORY_QUOTA_REACHED: [
    125,
    'Process {pid} ({program}) requested {asked} of GPU memory while {used} of the quota of ' +
      '{limit} were in use, and got CUDA_ERROR_OUT_OF_MEMORY. ' +
      'Use less memory, or request more nvidia-virtual/gpu.',
  ],
  PINNED_MEMORY_REACHED: [
    125,
    'Process {pid} ({program}) requested {asked} of pinned host memory and got ' +
      'CUDA_ERROR_OUT_OF_MEMORY: the limit for all programs of its allocation is {limit}. ' +
      'Pin less memory, or raise limits.pinnedMemory.',
  ],
  HANDLES_REACHED: [
    125,
    'Process {pid} ({program}) got CUDA_ERROR_OUT_OF_MEMORY: ' +
      'the processes of its allocation have {limit} open handles (streams, events, ' +
      'modules and others), which is the limit. Destroy unused objects, or raise limits.handles.',
  ],
  THREADS_REACHED: [
    125,
    'The CUDA calls of process {pid} ({program}) fail from now on: ' +
      'more than {limit} threads of its allocation used CUDA. ' +
      'Start the program again with fewer threads, or raise limits.threads.',
  ],
  MEMORY_KEPT: [
    125,
    'The sessions of allocation {id} were ended: according to NVML, its workers held {held} of ' +
      'GPU {gpu}. It is suspended, and of its memory {quota} have not left, plus {provided} for ' +
      'contexts and the driver ({margin} per session). A correct worker prevents this. ' +
      'Keep the log, and inspect the program before you start it again.',
  ],
  MEMORY_BEYOND_QUOTA: [
    125,
    'The sessions of allocation {id} were ended: according to NVML, its workers held {held} of ' +
      'GPU {gpu}, more than the quota of {quota} plus {provided} for contexts and the driver ' +
      '({margin} per session). A correct worker prevents this. ' +
      'Keep the log, and inspect the program before you start it again.',
  ],
  OVERRUN_REACHED: [
    125,
    'The CUDA calls of process {pid} ({program}) fail from now on: ' +
      'its work ran for {seconds} s after its window while others waited, ' +
      'longer than overrunLimit allows. Start the program again with shorter kernels, ' +
      'or raise overrunLimit.',
  ],
  WORKER_DIED: [
    125,
    'The CUDA calls of process {pid} ({program}) fail from now on: {reason}. ' +
      'Start the program again.',
  ],
  CACHE_BEYOND_LIMIT: [
    125,
    'The sessions of allocation {id} were ended and its cache of compiled code was cleared: ' +
      'it grew beyond {limit}, which a correct driver prevents.',
  ],
  REPORT_ENDLESS: [
    125,
    'The CUDA calls of process {pid} ({program}) fail from now on: ' +
      'its worker was ended because its report grew beyond {limit}, which a correct worker ' +
      'prevents. Inspect the program before you start it again.',
  ],
  GPU_LOST: [
    125,
    'The driver does not list the GPU any more. See the kernel log of the node (Xid), ' +
      'and reset the GPU or restart the node.',
  ],
  GPU_NOT_LISTED: [125, 'The GPUs of the node cannot be listed: {reason}. Repair the driver.'],
  GPU_ARRIVED: [
    125,
    'GPU {gpu} appeared after gpu-proxy started. gpu-proxy exits, so that its restart serves ' +
      'this GPU too. Programs continue.',
  ],
  GPU_NOT_TAKEN: [
    125,
    'GPU {gpu} appeared after gpu-proxy started, but gpu-proxy cannot restart with it yet: ' +
      '{reason} It retries with backoff; the other GPUs are served.',
  ],
  GPU_STARTS_NOTHING: [
    125,
    'No worker can start on the GPU: {reason}. See the kernel log of the node (Xid), ' +
      'and reset the GPU.',
  ],
  GPU_NEEDS_RESET: [
    125,
    'The driver reported Xid {xid}: {meaning}. Reset the GPU or restart the node. After a reset ' +
      'of the GPU alone, delete the pod of gpu-proxy on the node.',
  ],
  XID_REPORTED: [
    125,
    'The driver reported Xid {xid} for GPU {gpu}: {meaning}. {consequence} ' +
      'The kernel log of the node has the details.',
  ],
  HOST_NOT_REACHED: [
    125,
    'gpu-proxy cannot start workers outside of its container: {reason}. ' +
      'Give it the pid namespace of the host and the capabilities SYS_ADMIN, ' +
      'SYS_CHROOT and SYS_PTRACE, or set kubernetes.placement to none.',
  ],
  VERSION_MISSING: [
    125,
    'Version {version} of nvidia-virtual, which the container uses, is not installed in ' +
      '{directory}. Delete the pod, so that its replacement uses the current version.',
  ],
  PEER_SANDBOXED: [
    125,
    'The connection of process {pid} ({program}) was refused: ' +
      'it represents a sandbox (gVisor, Kata), which cannot share memory with the GPU worker. ' +
      'Run the pod with the runtime class runc.',
  ],
  PEER_OUTSIDE: [
    125,
    'The connection of process {pid} ({program}) was refused: ' +
      'its cgroup belongs to no pod, and this socket is for one container of a pod. ' +
      'Start the program in that container.',
  ],
  PEER_GONE: [
    125,
    'The connection of process {pid} was refused: the process ended while it was being identified.',
  ],
  PEER_OTHER_POD: [
    125,
    'The connection of process {pid} was refused: allocation {id} is for container {owner} of ' +
      'pod {pod}, but the process is in another pod. Request nvidia-virtual/gpu in the pod ' +
      'itself.',
  ],
  PEER_OTHER_CONTAINER: [
    125,
    'The GPU of pod {pod} is for container {owner}, but a process of container {container} ' +
      'tried to use it. Request nvidia-virtual/gpu in that container too.',
  ],
  POD_NOT_KNOWN: [
    125,
    'The pod {uid} of the program is not known: {reason} Start the program again when the API ' +
      'server knows its pod.',
  ],
  POD_RESOURCES_AWAY: [
    125,
    'The kubelet does not report slot assignments over {socket}: {reason}. ' +
      'Check that it runs, and that kubernetes.kubeletRoot is its root directory.',
  ],
  SLOTS_OF_ANOTHER: [
    125,
    'Pod {pod} may not use the slots {slots}: the kubelet assigned them to pod {holder}. ' +
      'Delete the pod, so that its replacement gets its own slots.',
  ],
  SLOTS_NOT_LISTED: [
    125,
    'The kubelet does not list the slots {slots} for one container of pod {pod}. ' +
      'Delete the pod, so that it is replaced.',
  ],
  SLOTS_NOT_FREE: [
    125,
    'The slots {slots} cannot be used yet: they belonged to pod {pod}, ' +
      'whose worker {workers} does not exit, even after SIGKILL. It hangs in the driver: ' +
      'see the kernel log of the node (Xid), and reset the GPU or restart the node.',
  ],
  SLOTS_GIVEN_AWAY: [
    125,
    'The kubelet assigned the slots {slots} of this pod to pod {pod}, ' +
      'so the programs of this pod on the GPU are ended. ' +
      'Delete the pod, so that its replacement gets its own slots.',
  ],
  GRANT_NOT_BOUND: [
    125,
    'The GPU of the program could not be prepared: {reason}. ' +
      'Fix this on the node (see the log of gpu-proxy), then start the program again.',
  ],
  CONTAINER_NOT_KNOWN: [
    125,
    'The API server does not know yet which container of pod {pod} has the id {id}. ' +
      'Start the program again in a moment.',
  ],
  CONTAINER_ASKS_NOTHING: [
    125,
    'Container {container} of pod {pod} requests no nvidia-virtual/gpu. ' +
      'Add it to the limits of the container.',
  ],
  LIBRARY_FOREIGN: [
    125,
    'A program of container {container} has loaded {file}, which finds no GPU here. ' +
      'Load the library by its name, or remove that file (often of the package cuda-compat) ' +
      'from the image.',
  ],
  LIBRARY_MUSL: [
    125,
    'Container {container} runs programs with the C library musl, as in Alpine. ' +
      'CUDA needs glibc: use an image of Debian, Ubuntu or Red Hat.',
  ],
  POD_REQUEST_WRONG: [125, 'The GPU request of pod {pod} is invalid: {problems}'],
  ASSIGNMENT_WRONG: [
    125,
    'The annotation nvidia-virtual/assigned of pod {pod} does not match its container ' +
      '{container}: {reason}. Only the nvidia-virtual scheduler may write it. ' +
      'Delete the pod, so that it is rescheduled.',
  ],
  ASSIGNED_GPU_GONE: [
    125,
    'Container {container} was assigned GPU {gpu}, which this node does not have; ' +
      'it has {gpus}. Delete the pod, so that it is rescheduled.',
  ],
  ASSIGNED_GPU_UNHEALTHY: [
    125,
    'Container {container} was assigned GPU {gpu}, which cannot be used: {reason}. ' +
      'Delete the pod, so that it is rescheduled.',
  ],
  NO_SINGLE_GPU: [
    125,
    'Container {container} has {slots} slots, but no single GPU of the node has room for them: ' +
      '{told}. Use the nvidia-virtual scheduler, which keeps them together, request fewer, ' +
      'or spread them with the annotation nvidia-virtual/gpus.',
  ],
  NO_GPUS_TOGETHER: [
    125,
    'Container {container} has {slots} slots over {gpus} GPUs, {each} on each, ' +
      'but the node does not have {gpus} GPUs with room for them: {told}. ' +
      'Use the nvidia-virtual scheduler, or request fewer.',
  ],
  ALLOCATION_DRAINING: [
    125,
    'The connection of process {pid} was refused: allocation {id} is being drained and takes ' +
      'no new sessions.',
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
