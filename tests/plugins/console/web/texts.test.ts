/** The languages have the keys of English in its order, one a line, with the same gaps, no empty words and their own plural forms. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import i18next from 'i18next';

const folder = new URL('../../../../plugins/console/web/src/texts/', import.meta.url);
const codes = readdirSync(folder).filter((name) => /^\w\w$/.test(name) && name !== 'en');

interface Tree {
  readonly [key: string]: string | Tree;
}

function flat(texts: Tree, path = ''): [key: string, text: string][] {
  return Object.entries(texts).flatMap(([key, value]): [string, string][] =>
    typeof value === 'string' ? [[path + key, value]] : flat(value, `${path}${key}.`),
  );
}
const gapsOf = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, gap]) => gap).sort();
const formsOf = (code: string) => new Intl.PluralRules(code).resolvedOptions().pluralCategories;
const plural = /_other$/;

async function english(): Promise<Map<string, string>> {
  const load = async (file: string) => ((await import(new URL(file, folder).href)) as { default: Tree }).default;
  const texts = await load('en/index.ts');
  // These come with their pages, but the other languages have them from the start.
  const names = [
    'connect',
    'profile',
    'files',
    'playground',
    'insights',
    'statements',
    'credit-line',
    'budgets',
    'projects',
    'members',
    'rotation',
    'company',
  ];
  const pages = await Promise.all(names.map((name) => load(`en/${name}.ts`)));
  const client = Object.assign({}, texts['client'], ...pages);
  return new Map(flat({ ...texts, client, operator: await load('en/operator.ts') }));
}

function textsOf(code: string): Tree {
  const [client, operator] = ['client', 'operator'].map((name) => {
    const json = readFileSync(new URL(`${code}/${name}.json`, folder), 'utf8');
    const texts = JSON.parse(json) as Tree;
    const wanted = `${JSON.stringify(texts, undefined, 2)}\n`.split('\n');
    const lines = json.split('\n');
    const at = wanted.findIndex((line, index) => line !== lines[index]);
    assert.equal(at, -1, `${code}/${name}.json, line ${at + 1}: one key a line, none twice`);
    return texts;
  });
  return { ...client, operator: operator! };
}

/** The keys that a language has, each with the English text that it stands for: one for each of its own plural forms. */
function expected(texts: ReadonlyMap<string, string>, code: string): [key: string, text: string][] {
  return [...texts].flatMap(([key, text]): [string, string][] => {
    if (key.endsWith('_one')) return [];
    if (!plural.test(key)) return [[key, text]];
    const keys = formsOf(code).map((form) => key.replace(plural, `_${form}`));
    return keys.map((form) => [form, texts.get(form) ?? text]);
  });
}

test('a language has every key of English in its order, with the same placeholders and its own plural forms', async () => {
  assert.ok(codes.includes('zh') && codes.includes('de'), codes.join());
  const all = await english();
  for (const code of codes) {
    const texts = new Map(flat(textsOf(code)));
    const keys = [...texts.keys()];
    const wanted = expected(all, code);
    const at = wanted.findIndex(([key], index) => key !== keys[index]);
    assert.equal(at, -1, `${code} has ${keys[at]} where English has ${wanted[at]?.[0]}`);
    assert.equal(keys.length, wanted.length, `${code} has ${keys.slice(wanted.length).join()} beside`);
    for (const [key, text] of wanted) {
      assert.notEqual(texts.get(key)!.trim(), '', `${code} ${key}`);
      assert.deepEqual(gapsOf(texts.get(key)!), gapsOf(text), `${code} ${key}`);
    }
  }
});

test('the library finds a form of each counted text in each language', async () => {
  const counted = [...(await english()).keys()].filter((key) => plural.test(key));
  const resources = Object.fromEntries(codes.map((code) => [code, { translation: textsOf(code) }]));
  const library = i18next.createInstance();
  await library.init({ resources, fallbackLng: false });
  for (const code of codes)
    for (const key of counted)
      for (const count of [0, 1, 2, 5, 100])
        assert.ok(library.exists(key.replace(plural, ''), { lng: code, count }), `${code} ${key} ${count}`);
});

test('every counted text of English has its two forms', async () => {
  const keys = [...(await english()).keys()];
  const ending = (form: string) => keys.filter((key) => key.endsWith(form)).map((key) => key.slice(0, -form.length));
  assert.deepEqual(ending('_one'), ending('_other'));
});
