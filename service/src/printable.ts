/** Control and format characters, such as those that reverse text, and bytes that are no text. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}\uFFFD]/gu;

/**
 * Text that a tenant chose, such as a path or a command line, on one line of a log, a message or a
 * terminal: other characters become question marks.
 */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, '?');
}
