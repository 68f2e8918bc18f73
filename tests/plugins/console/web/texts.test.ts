/** The languages have the same keys, gaps and no empty words; the type checker sees to the keys, this to the rest. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { en } from '../../../../plugins/console/web/src/texts/en.ts';
import { zh } from '../../../../plugins/console/web/src/texts/zh.ts';

function flat(texts: object, path = ''): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(texts)) {
    if (typeof value === 'string') found.set(path + key, value);
    else for (const [inner, text] of flat(value as object, `${path}${key}.`)) found.set(inner, text);
  }
  return found;
}
const gapsOf = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, gap]) => gap).sort();

test('every text is there in both languages, with the same gaps', () => {
  const [english, chinese] = [flat(en), flat(zh)];
  assert.deepEqual([...english.keys()].sort(), [...chinese.keys()].sort());
  for (const [key, text] of english) {
    assert.notEqual(text.trim(), '', key);
    assert.notEqual(chinese.get(key)!.trim(), '', key);
    assert.deepEqual(gapsOf(chinese.get(key)!), gapsOf(text), key);
  }
});
