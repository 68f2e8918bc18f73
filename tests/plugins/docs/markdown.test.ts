/** Texts from elsewhere in Markdown: whatever they are, the page shows them as they are, and nothing of them is markup. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressOf, code, fenced, openRenderer, plain, quoted, table } from '../../../plugins/docs/site/markdown.ts';
import { find } from '../../../plugins/docs/site/search.ts';
import { fillTemplate } from '../../../plugins/docs/site/template.ts';
import { fc } from '../../helpers/properties.ts';

const render = await openRenderer();
/** Made of what means something to Markdown, HTML or the templates. */
const odd = fc
  .array(
    fc.oneof(
      fc.constantFrom(...'`*_[]()<>|\\~&!#-+=:.{}"\'/ \t1a'),
      fc.constantFrom(
        '<b>',
        '&amp;',
        '](javascript:x)',
        '```',
        '{{name}}',
        '<http://a.b>',
        '| --- |',
        '\n',
        '\n\n# x',
        '1. ',
        '- ',
      ),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((parts) => parts.join(''));
const line = (text: string) => text.replace(/\s+/g, ' ').trim();
const wordsOf = (html: string) =>
  line(
    html
      .replace(/<[^>]*>/g, '')
      .replace(/&(?:#(\d+)|(lt|gt|quot|amp));/g, (_, sign, name) =>
        sign === undefined ? { lt: '<', gt: '>', quot: '"', amp: '&' }[name as 'lt'] : String.fromCharCode(sign),
      ),
  );
const tagsOf = (html: string) => Array.from(html.matchAll(/<(\w+)/g), ([, tag]) => tag!);

test('any text stands in a paragraph, in code and in a table as it is', () => {
  fc.assert(
    fc.property(odd, (text) => {
      const paragraph = render(`before ${plain(text)} behind`).html;
      assert.equal(wordsOf(paragraph), line(`before ${line(text)} behind`));
      assert.deepEqual(tagsOf(paragraph), ['p']);
      const alone = render(plain(text)).html;
      assert.equal(wordsOf(alone), line(text));
      assert.ok(
        tagsOf(alone).every((tag) => tag === 'p'),
        alone,
      );
      if (line(text) === '') return;
      const { html } = render(table(['a', 'b'], [[plain(text), code(text)]]));
      const cells = Array.from(html.matchAll(/<td>([\s\S]*?)<\/td>/g), ([, cell]) => wordsOf(cell!));
      assert.deepEqual(cells, [line(text), line(text)]);
      const block = render(fenced(text, 'sh', text)).html;
      assert.deepEqual(
        tagsOf(block).filter((tag) => tag !== 'figcaption'),
        ['figure', 'pre', 'code'],
      );
      const inside = /<code[^>]*>([\s\S]*)<\/code>/.exec(block)![1]!;
      assert.equal(wordsOf(inside), line(text));
    }),
  );
});

test('a value is filled into text, code and fences, and never ends them', () => {
  const template = 'A {{name}}, `{{name}}`, `x {{name}} y`.\n\n```sh\n{{name}}\n```\n\nEnd {{other}}';
  fc.assert(
    fc.property(odd, (text) => {
      const value = line(text.replaceAll('```', '')) || 'x';
      const { html } = render(fillTemplate(template, { values: { name: value }, blocks: {} }));
      assert.deepEqual(tagsOf(html), ['p', 'code', 'code', 'figure', 'pre', 'code', 'p']);
      assert.ok(wordsOf(html).endsWith('End {{other}}'), html);
      assert.ok(wordsOf(html).startsWith(line(`A ${value},`)), html);
    }),
  );
});

test('a block stands for a whole line outside of fences alone', () => {
  const gaps = { values: {}, blocks: { rows: () => '- one' } };
  assert.equal(
    fillTemplate('{{rows}}\n\n```\n{{rows}}\n```\na {{rows}}', gaps),
    '- one\n\n```\n{{rows}}\n```\na {{rows}}',
  );
});

test('an address in Markdown keeps any name, and an argument of a shell any text', () => {
  fc.assert(
    fc.property(odd, (text) => {
      const name = line(text);
      const { html } = render(`[x](/docs/models/${addressOf(name)})`);
      const href = /href="([^"]*)"/.exec(html)?.[1];
      assert.equal(decodeURIComponent(href!), `/docs/models/${name}`);
      assert.equal(quoted(name).replaceAll(`'\\''`, "'").slice(1, -1), name);
    }),
  );
});

test('a search wants every word, folds accents and case, and prefers headings', () => {
  const entries = [
    ['/a', 'Errors', 'Über limits', 'what to do'],
    ['/b', 'Limits', '', 'uber all'],
    ['/c', 'Others', '', 'sublimits'],
  ] as const;
  const found = (text: string) => find(entries, text).map(([address]) => address);
  assert.deepEqual(found('LIMITS'), ['/a', '/b', '/c']);
  assert.deepEqual(found('uber'), ['/a', '/b']);
  assert.deepEqual(found('uber do'), ['/a']);
  assert.deepEqual(found('uber nothing'), []);
});
