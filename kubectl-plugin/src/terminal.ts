/** Where the command reads its environment and writes its output. */
export interface Terminal {
  readonly out: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly err: NodeJS.WritableStream;
  readonly environment: NodeJS.ProcessEnv;
}
