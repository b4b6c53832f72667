import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

const MAXIMUM_COLUMNS = 100;
const MAXIMUM_WORDS = 30;
const MAXIMUM_CELL = 200;

/** Files without a formatter that wraps lines. */
const WRAPPED_BY_HAND = /(\.(md|py|sh|yaml|tpl|proto)|\.ci\/run|Dockerfile)$/;
/** Files whose comments are not wrapped by a formatter. */
const COMMENTED = /(\.(ts|cpp|h|cu|cmake)|CMakeLists\.txt)$/;
const COMMENT = /^\s*(\/\/|\/\*|\*|#)/;
/** The formatter keeps an import on one line. */
const ON_ONE_LINE = /^\s*import |^\} from /;
const GOLDEN = 'cuda-api/golden/expected/';
/** Unchanged since they were recorded on a GPU: the recordings belong to exactly this text. */
const RECORDED = 'test/conformance/programs/';
/** Pages whose sentences are checked. */
const PAGES = /^docs\/.+\.md$|^CONTRIBUTING\.md$|(^|\/)README\.md$/;
/** A page whose cells are messages of programs. */
const MESSAGES = 'docs/errors.md';

export const commentWidth: Rule = {
  law: `TypeScript, comments, prose, YAML, Python and shell end at column ${MAXIMUM_COLUMNS}`,
  check: async () => (await trackedFiles()).flatMap(findLongLines),
};

export const sentenceLength: Rule = {
  law: `sentences of docs/, README.md and CONTRIBUTING.md have at most ${MAXIMUM_WORDS} words`,
  check: async () => (await trackedFiles()).flatMap(findLongSentences),
};

export const tableCells: Rule = {
  law: `a cell of a table has at most ${MAXIMUM_CELL} characters`,
  check: async () => (await trackedFiles()).flatMap(findLongCells),
};

export function findLongLines(file: TrackedFile): string[] {
  if (file.path.startsWith(GOLDEN) || file.path.startsWith(RECORDED)) return [];
  const isWrapped = WRAPPED_BY_HAND.test(file.path);
  if (!isWrapped && !COMMENTED.test(file.path)) return [];
  const isCode = file.path.endsWith('.ts');
  const isChecked = (line: string) =>
    isWrapped || COMMENT.test(line) || (isCode && !ON_ONE_LINE.test(line));
  const lines = file.path.endsWith('.md') ? proseLines(file.text()) : file.text().split('\n');
  return lines.flatMap((line, index) =>
    line.length > MAXIMUM_COLUMNS && isChecked(line) && isBreakable(line)
      ? [`${file.path}:${index + 1} has ${line.length} columns.`]
      : [],
  );
}

/** A long URL or path cannot be wrapped. */
function isBreakable(line: string): boolean {
  return line.trimStart().replace(/^\S+ /, '').lastIndexOf(' ', MAXIMUM_COLUMNS) > 0;
}

/** The lines of a page. Tables, code blocks and images are replaced by empty lines. */
function proseLines(text: string): string[] {
  let isCode = false;
  return text.split('\n').map((line) => {
    const isFence = /^\s*```/.test(line);
    if (isFence) isCode = !isCode;
    return isCode || isFence || /^\s*(\||!?\[[^\]]*\]\(\S+\)$|<)/.test(line) ? '' : line;
  });
}

export function findLongSentences(file: TrackedFile): string[] {
  if (!PAGES.test(file.path)) return [];
  return sentences(file.text()).flatMap((sentence) => {
    const words = sentence.split(' ').filter((word) => /\w/.test(word)).length;
    return words > MAXIMUM_WORDS
      ? [`${file.path}: ${words} words: "${sentence.slice(0, 80)}…"`]
      : [];
  });
}

/** Splits paragraphs and list items at full stops, question marks and colons. */
function sentences(text: string): string[] {
  const blocks = proseLines(text)
    .map((line) => (/^\s*([-*]|\d+\.|#+) /.test(line) ? `\n${line}` : line))
    .join('\n')
    .split(/\n\s*\n/);
  return blocks.flatMap((block) =>
    block
      .replace(/\s+/g, ' ')
      .trim()
      .split(/(?<=[.?!:][)"*`]*) /),
  );
}

/** Longer text belongs in a section or a list. */
export function findLongCells(file: TrackedFile): string[] {
  if (!file.path.endsWith('.md') || file.path === MESSAGES) return [];
  return file
    .text()
    .split('\n')
    .flatMap((line, index) => {
      const cells = line.startsWith('|') ? line.split(' | ') : [];
      const longest = Math.max(...cells.map((cell) => cell.length));
      return longest > MAXIMUM_CELL
        ? [`${file.path}:${index + 1} has a cell of ${longest} characters.`]
        : [];
    });
}
