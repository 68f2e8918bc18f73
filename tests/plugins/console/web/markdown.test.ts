/** What models write becomes blocks and spans; whatever they write, nothing of it is lost or runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksOf, spansOf } from '../../../../plugins/console/web/src/parts/markdown-blocks.ts';
import { fc } from '../../../helpers/properties.ts';

test('headings, lists, code, quotes, tables and paragraphs are distinguished', () => {
  const text = [
    '## Title ##',
    'One\ntwo',
    '',
    '- a\n  more\n- b',
    '1. x',
    '> said\n> more',
    '```ts\nconst a = `1`;\n\n# no heading\n```',
    '| a | b |\n|---|:-:|\n| 1 | 2 |',
    '---',
  ].join('\n');
  assert.deepEqual(blocksOf(text), [
    { kind: 'heading', level: 2, text: 'Title' },
    { kind: 'paragraph', text: 'One\ntwo' },
    { kind: 'list', ordered: false, items: ['a\nmore', 'b', 'x'] },
    { kind: 'quote', text: 'said\nmore' },
    { kind: 'code', language: 'ts', text: 'const a = `1`;\n\n# no heading' },
    { kind: 'table', head: ['a', 'b'], rows: [['1', '2']] },
    { kind: 'rule' },
  ]);
});

test('an unclosed code block is code', () => {
  assert.deepEqual(blocksOf('Look:\n```sh\nls'), [
    { kind: 'paragraph', text: 'Look:' },
    { kind: 'code', language: 'sh', text: 'ls' },
  ]);
});

test('bold, italics, code and links to web pages are spans; other links and HTML stay text', () => {
  assert.deepEqual(spansOf('a **b** *c* `d` [e](https://f.test/g)'), [
    { kind: 'text', text: 'a ' },
    { kind: 'strong', text: 'b' },
    { kind: 'text', text: ' ' },
    { kind: 'em', text: 'c' },
    { kind: 'text', text: ' ' },
    { kind: 'code', text: 'd' },
    { kind: 'text', text: ' ' },
    { kind: 'link', text: 'e', href: 'https://f.test/g' },
  ]);
  for (const text of ['[x](javascript:alert(1))', '<img src=x onerror=alert(1)>', '2 * 3 * 4'])
    assert.deepEqual(spansOf(text), [{ kind: 'text', text }]);
});

test('no letter is lost, and any text is parsed quickly', () => {
  const piece = fc.constantFrom(
    'a',
    'b ',
    '\n',
    '\n\n',
    '# ',
    '- ',
    '1. ',
    '> ',
    '`',
    '```',
    '*',
    '**',
    '|',
    '---',
    '[',
    '](',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 80 }), (pieces) => {
      const text = pieces.join('');
      const letters = (all: string) => all.replace(/[^ab]/g, '').length;
      const shown = JSON.stringify(blocksOf(text).map(({ kind: _, ...rest }) => rest)).replace(
        /"(?:text|language|ordered|items|head|rows|level)":|true|false/g,
        '',
      );
      assert.equal(letters(shown), letters(text));
      assert.equal(
        spansOf(text)
          .map((span) => span.text)
          .join('').length <= text.length,
        true,
      );
    }),
  );
});

test('a line of any length is parsed in linear time', () => {
  const long = 100_000;
  const lines = [
    ...['| ', '**', '[', '`', '*a', '[a', '[a](http://a', '**a ', '`a ', '#', '-', '- ', '> ', '~', ' ', 'a '].map(
      (piece) => piece.repeat(long / piece.length),
    ),
    `# ${'#'.repeat(long)}x`,
    `# ${' '.repeat(long)}x`,
    `# a${' #'.repeat(long / 2)}x`,
    `a|b\n${' '.repeat(long)}x`,
    `a|b\n${'-'.repeat(long)}x`,
    `a|b\n-${' '.repeat(long)}x`,
    `a|b\n${'-|'.repeat(long / 2)}x`,
    `~~~${'~'.repeat(long)}\``,
    `\`\`\`${' '.repeat(long)}x\``,
    `\`\`\`\n\`\`\`${' '.repeat(long)}x`,
    `-${' '.repeat(long)}x`,
  ];
  for (const line of lines) {
    // Processor time: on a busy machine the clock also counts what others do.
    const began = process.cpuUsage();
    for (const block of blocksOf(line)) if ('text' in block) spansOf(block.text);
    spansOf(line);
    const took = process.cpuUsage(began).user / 1_000;
    assert.ok(took < 1_000, `${JSON.stringify(line.slice(0, 20))}… took ${took} ms`);
  }
});
