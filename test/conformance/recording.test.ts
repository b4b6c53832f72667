import {
  difference,
  ownJudgement,
  parseRecording,
  RecordingError,
  sortUnordered,
} from './recording.js';

const TEXT =
  'program: a\nhash: 1f\ngpu: G\ndriver: 1\ndate: 2026-01-01\nexit: 3\nstdout: 7 ' +
  'bytes\none\ntwo\nstderr: 0 bytes\n\n';

describe('parseRecording', () => {
  test('parses the output of record.py', () => {
    const recording = parseRecording(Buffer.from(TEXT));
    expect(recording).toEqual({
      program: 'a',
      hash: '1f',
      status: 3,
      stdout: 'one\ntwo',
      stderr: '',
    });
  });

  test('refuses a truncated recording', () => {
    for (let size = 0; size < TEXT.length; ++size) {
      expect(() => parseRecording(Buffer.from(TEXT.slice(0, size)))).toThrow(RecordingError);
    }
  });

  test('counts bytes, not characters', () => {
    const text = TEXT.replace('7 bytes\none\ntwo', '5 bytes\nä€');
    expect(parseRecording(Buffer.from(text)).stdout).toBe('ä€');
  });
});

describe('sortUnordered', () => {
  test('sorts runs of marked lines in place', () => {
    expect(sortUnordered('head\nx 2\nx 1\nmiddle\nx 4\nx 3\n', 'x')).toBe(
      'head\nx 1\nx 2\nmiddle\nx 3\nx 4\n',
    );
  });

  test('keeps everything without a mark', () => {
    expect(sortUnordered('b\na\n', null)).toBe('b\na\n');
  });
});

describe('difference', () => {
  const recording = parseRecording(Buffer.from(TEXT));
  const same = { stdout: 'one\ntwo', stderr: '', status: 3, timedOut: false };

  test('is undefined if all is equal', () => {
    expect(difference(recording, same)).toBeUndefined();
  });

  test('names the first line that differs', () => {
    expect(difference(recording, { ...same, stdout: 'one\nthree' })).toBe(
      'standard output, line 2: "three" instead of "two"',
    );
    expect(difference(recording, { ...same, stdout: 'one' })).toBe(
      'standard output, line 2: "(end)" instead of "two"',
    );
    expect(difference(recording, { ...same, stderr: 'oh' })).toContain('standard error, line 1');
  });

  test('reports an extra line, the exit status and a hang', () => {
    expect(difference(recording, { ...same, stdout: 'one\ntwo\nmore' })).toBe(
      'standard output, line 3: "more" instead of "(end)"',
    );
    expect(difference(recording, { ...same, status: -11 })).toBe('exit status -11 instead of 3');
    expect(difference(recording, { ...same, timedOut: true })).toBe('it did not end in time');
  });
});

describe('ownJudgement', () => {
  const content = { stdout: 'as expected\n', stderr: '', status: 0, timedOut: false };

  test('is undefined if the program succeeded', () => {
    expect(ownJudgement(content)).toBeUndefined();
  });

  test('reports the exit status with the output, and a hang', () => {
    expect(ownJudgement({ ...content, status: 1, stdout: 'line 7: not so' })).toBe(
      'exit status 1: line 7: not so',
    );
    expect(ownJudgement({ ...content, timedOut: true })).toBe('it did not end in time');
  });
});
