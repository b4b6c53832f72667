/** A client of NVML that runs beside a program with 512 MiB of a quota of 2 GiB. */
export interface Client {
  readonly what: string;
  readonly command: readonly string[];
  /** What it must print. */
  readonly expected: readonly RegExp[];
  readonly status?: number;
}

const NAME = /Simulated GPU/;
const UUID = /GPU-73696d75-/;
/** A GPU without NVLink: nothing is printed. */
const NO_LINK = /^(?![\s\S]*\bLink\b)/;
/** Kernels run all the time. */
const BUSY = '([5-9]\\d|100)';

export function nvidiaSmi(smi: string): Client[] {
  const query = 'name,uuid,memory.total,memory.used,utilization.gpu,pci.bus_id,mig.mode.current';
  const client = (words: string[], ...expected: RegExp[]): Client => ({
    what: ['nvidia-smi', ...words].join(' ').slice(0, 60),
    command: [smi, ...words],
    expected,
  });
  return [
    client(
      [],
      NAME,
      /CUDA Version: 13\.0/,
      /512MiB \/ {3}2048MiB/,
      new RegExp(` ${BUSY}% +Default`),
      /N\/A +\d+ +C .*python3.* 512MiB/,
    ),
    client(['-L'], NAME, UUID),
    client(
      ['-q'],
      /Product Brand +: NVIDIA$/m,
      /Total +: 2048 MiB/,
      /Used +: 512 MiB/,
      /Process ID +: \d+/,
      /Current +: Disabled/,
    ),
    client(
      [`--query-gpu=${query}`, '--format=csv,noheader'],
      new RegExp(
        `^Simulated GPU, GPU-.*, 2048 MiB, 512 MiB, ${BUSY} %, 00000000:17:00.0, Disabled`,
        'm',
      ),
    ),
    client(['--query-compute-apps=pid,used_memory', '--format=csv,noheader'], /^\d+, 512 MiB/m),
    client(['dmon', '-c', '1'], new RegExp(`^ +0 +106 +39 +41 +${BUSY} `, 'm')),
    client(['pmon', '-s', 'm', '-c', '1'], /^ +0 +\d+ +C +512 .*python3/m),
    client(['pmon', '-s', 'u', '-c', '1'], new RegExp(`^ +0 +\\d+ +C +${BUSY} .*python3`, 'm')),
    client(['topo', '-m'], /^GPU0\s+X\s/m),
    client(['nvlink', '-s'], NO_LINK),
    { ...client(['-mig', '1'], /Insufficient Permissions/), status: 4 },
  ];
}

export function pythonClients(packages: string, gpustat: string, scripts: string): Client[] {
  const environment = `PYTHONPATH=${packages}:${gpustat}`;
  const python = (what: string, words: string[], ...expected: RegExp[]): Client => ({
    what,
    command: ['env', environment, 'python3', ...words],
    expected,
  });
  return [
    python('nvitop', ['-m', 'nvitop', '-1'], NAME, /512\.0MiB \/ 2048MiB/, / C +\S+ 512\.0MiB/),
    python('gpustat', ['-m', 'gpustat', '--no-color'], NAME, /512 \/ {2}2048 MB/),
    python(
      'PyTorch, vLLM and JAX, as they look for GPUs',
      [`${scripts}/frameworks.py`],
      /^torch 1 GPU-/m,
      /^vllm Simulated GPU 9\.0 2048 512$/m,
      /^jax 580\.159\.04 5 16 no NVLink, fabric 0$/m,
      /^processes True$/m,
      /^setter refused$/m,
    ),
  ];
}
