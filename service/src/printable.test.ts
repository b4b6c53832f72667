import { printable } from './printable.js';

test('printable() keeps text of any script on one line', () => {
  expect(printable('/home/jürgen/训练 run.py --lr=0.1')).toBe('/home/jürgen/训练 run.py --lr=0.1');
});

test('printable() replaces what a terminal would obey', () => {
  expect(printable('a\x1b[2Jb\nc\rd\te\x7ff\u009bg')).toBe('a?[2Jb?c?d?e?f?g');
  expect(printable('x\u202ey\u2028z\ufffd\0')).toBe('x?y?z??');
});
