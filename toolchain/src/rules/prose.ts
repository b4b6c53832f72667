import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

const LONGEST_LINE = 100;
const MOST_WORDS = 30;
const LONGEST_CELL = 200;

/** Files that no formatter wraps. */
const WRAPPED_BY_HAND = /(\.(md|py|sh|yaml|tpl)|\.ci\/run)$/;
/** Files whose comments the formatters leave as they are. */
const COMMENTED = /(\.(ts|cpp|h|cu|cmake)|CMakeLists\.txt)$/;
const COMMENT = /^\s*(\/\/|\/\*|\*|#)/;
const GOLDEN = 'cuda-api/golden/expected/';
/** Recorded on a GPU as they are: their outputs belong to exactly this text. */
const RECORDED = 'test/conformance/programs/';
/** Its cells are messages as programs print them. */
const MESSAGES = 'docs/errors.md';

export const commentWidth: Rule = {
  law: `comments, prose, YAML, templates, Python and shell end at column ${LONGEST_LINE}`,
  check: async () => (await trackedFiles()).flatMap(findLongLines),
};

export const sentenceLength: Rule = {
  law: `sentences in docs/ have at most ${MOST_WORDS} words`,
  check: async () => (await trackedFiles()).flatMap(findLongSentences),
};

export const tableCells: Rule = {
  law: `a cell of a table has at most ${LONGEST_CELL} characters`,
  check: async () => (await trackedFiles()).flatMap(findLongCells),
};

export function findLongLines(file: TrackedFile): string[] {
  if (file.path.startsWith(GOLDEN) || file.path.startsWith(RECORDED)) return [];
  const isWrapped = WRAPPED_BY_HAND.test(file.path);
  if (!isWrapped && !COMMENTED.test(file.path)) return [];
  const lines = file.path.endsWith('.md') ? proseLines(file.text()) : file.text().split('\n');
  return lines.flatMap((line, index) =>
    line.length > LONGEST_LINE && (isWrapped || COMMENT.test(line)) && isBreakable(line)
      ? [`${file.path}:${index + 1} has ${line.length} columns.`]
      : [],
  );
}

/** A long address or path cannot be divided. */
function isBreakable(line: string): boolean {
  return line.trimStart().replace(/^\S+ /, '').lastIndexOf(' ', LONGEST_LINE) > 0;
}

/** The lines of a page; empty where a table, a code block or a picture stands. */
function proseLines(text: string): string[] {
  let isCode = false;
  return text.split('\n').map((line) => {
    const isFence = /^\s*```/.test(line);
    if (isFence) isCode = !isCode;
    return isCode || isFence || /^\s*(\||!?\[[^\]]*\]\(\S+\)$|<)/.test(line) ? '' : line;
  });
}

export function findLongSentences(file: TrackedFile): string[] {
  if (!file.path.startsWith('docs/') || !file.path.endsWith('.md')) return [];
  return sentences(file.text()).flatMap((sentence) => {
    const words = sentence.split(' ').filter((word) => /\w/.test(word)).length;
    return words > MOST_WORDS ? [`${file.path}: ${words} words: "${sentence.slice(0, 80)}…"`] : [];
  });
}

/** A paragraph or list item is divided at full stops, question marks, colons and semicolons. */
function sentences(text: string): string[] {
  const blocks = proseLines(text)
    .map((line) => (/^\s*([-*]|\d+\.|#+) /.test(line) ? `\n${line}` : line))
    .join('\n')
    .split(/\n\s*\n/);
  return blocks.flatMap((block) =>
    block
      .replace(/\s+/g, ' ')
      .trim()
      .split(/(?<=[.?!:;][)"*`]*) /),
  );
}

/** Longer text is a section or a list. */
export function findLongCells(file: TrackedFile): string[] {
  if (!file.path.endsWith('.md') || file.path === MESSAGES) return [];
  return file
    .text()
    .split('\n')
    .flatMap((line, index) => {
      const cells = line.startsWith('|') ? line.split(' | ') : [];
      const longest = Math.max(...cells.map((cell) => cell.length));
      return longest > LONGEST_CELL
        ? [`${file.path}:${index + 1} has a cell of ${longest} characters.`]
        : [];
    });
}
