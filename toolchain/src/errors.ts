/**
 * What stops the toolchain, as one sentence for the person at the terminal. Anything else that is
 * thrown is a defect and keeps its stack.
 */
export class ToolchainError extends Error {
  override readonly name = 'ToolchainError';
}

/** Runs the main function of a command; a failure becomes its sentence and exit status 1. */
export async function runMain(main: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await main();
  } catch (error) {
    process.stderr.write(
      `\n${error instanceof ToolchainError ? error.message : (error as Error).stack}\n`,
    );
    process.exitCode = 1;
  }
}
