/** The languages have the same keys, gaps and no empty words; the type checker sees to the keys, this to the rest. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';

const folder = new URL('../../../../plugins/console/web/src/texts/', import.meta.url);
const codes = readdirSync(folder).filter((name) => /^\w\w$/.test(name));

function flat(texts: object, path = ''): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(texts)) {
    if (typeof value === 'string') found.set(path + key, value);
    else for (const [inner, text] of flat(value as object, `${path}${key}.`)) found.set(inner, text);
  }
  return found;
}
const gapsOf = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, gap]) => gap).sort();

async function textsOf(code: string): Promise<Map<string, string>> {
  const load = async (file: string) => ((await import(new URL(file, folder).href)) as { default: object }).default;
  // English is there from the start.
  const first = code === 'en' ? 'en.ts' : `${code}/index.ts`;
  const texts = (await load(first)) as { client: object };
  const later = code === 'en' ? await Promise.all(['en/playground.ts', 'en/files.ts'].map(load)) : [];
  const client = Object.assign({}, texts.client, ...later);
  return flat({ ...texts, client, operator: await load(`${code}/operator.ts`) });
}

test('every text is there in every language, with the same gaps', async () => {
  assert.ok(codes.includes('en') && codes.includes('zh'), codes.join());
  const english = await textsOf('en');
  for (const code of codes) {
    const others = await textsOf(code);
    assert.deepEqual([...others.keys()].sort(), [...english.keys()].sort(), code);
    for (const [key, text] of english) {
      assert.notEqual(others.get(key)!.trim(), '', `${code} ${key}`);
      assert.deepEqual(gapsOf(others.get(key)!), gapsOf(text), `${code} ${key}`);
    }
  }
});
