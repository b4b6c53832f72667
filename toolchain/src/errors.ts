/**
 * An expected failure: only its message is printed. Other exceptions are defects and are printed
 * with their stack.
 */
export class ToolchainError extends Error {
  override readonly name = 'ToolchainError';
}

/** Runs the main function of a command. An exception is printed and sets exit status 1. */
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
