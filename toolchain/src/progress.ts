/**
 * Shows progress: one changing line on a terminal, otherwise a line per 10 %.
 */
export interface Progress {
  note(text: string): void;
  step(done: number, of: number): void;
  finish(): void;
}

export function showProgress(title: string, out: NodeJS.WriteStream = process.stdout): Progress {
  const started = Date.now();
  let tenths = 0;
  let dirty = false;
  const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`;
  const show = (text: string) => {
    dirty = out.isTTY;
    out.write(out.isTTY ? `\r\u001b[K${title}: ${text}` : `${title}: ${text}\n`);
  };
  return {
    note: show,
    step(done, of) {
      const reached = Math.floor((10 * done) / of);
      if (!out.isTTY && reached === tenths) return;
      tenths = reached;
      show(`${done} of ${of} (${seconds()})`);
    },
    finish() {
      if (dirty) out.write('\r\u001b[K');
      out.write(`${title}: done (${seconds()})\n`);
    },
  };
}
