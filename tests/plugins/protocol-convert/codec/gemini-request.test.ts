import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordings } from '../../../helpers/recordings.ts';
import { decode, encode } from './gemini-harness.ts';

test('every recorded request is decoded, encoded and decoded again without a loss', () => {
  const vendorsOwn = /^(safetySettings|.*functionDeclarations\[\d+\]\.(response|responseJsonSchema))$/;
  let seen = 0;
  for (const { name, request, response, status } of recordings('gemini')) {
    if (request === undefined || status === 400 || response.length === 0) continue;
    const json = JSON.parse(request.toString('utf8'));
    if (json.cachedContent !== undefined) continue;
    const { prompt, dropped } = decode(json);
    for (const field of dropped) assert.match(field, vendorsOwn, `${name}: ${field}`);
    const hasUrls = JSON.stringify(prompt.turns).includes('"form":"url"');
    if (hasUrls) continue;
    const { body, dropped: lost } = encode(prompt, {
      traits: { reasoning: request.includes('thinkingLevel') ? 'level' : 'budget', signatures: false },
    });
    assert.deepEqual(lost, [], name);
    assert.deepEqual(decode(body).prompt, decode({ ...json, contents: body.contents }).prompt, name);
    seen++;
  }
  assert.ok(seen > 25, String(seen));
});
