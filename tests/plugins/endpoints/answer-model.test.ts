/** `answer_model: asked`: relayed answers of embeddings and the like name the model as the client did, and change no other byte. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestbed, type Testbed } from './setup.ts';

let requested: Testbed;
let vendors: Testbed;
before(async () => {
  const models = `
  small: { owned_by: tests, kind: embedding, targets: [first/text-small], price: { input: 1 } }
  guard: { owned_by: tests, kind: moderation, targets: [first/omni-guard], price: { request: 0.001 } }
`;
  const speaks = ['openai-embeddings', 'openai-moderations'];
  requested = await openTestbed(models, speaks, 'endpoints: { answer_model: asked }');
  vendors = await openTestbed(models, speaks);
});
after(async () => {
  await requested?.stop();
  await vendors?.stop();
});

const embedded =
  '{"object": "list", "data":[{"object":"embedding","index":0,"embedding":[1e-3, 2.50]}], "model" :"text-small-v2", "usage":{"prompt_tokens":2,"total_tokens":2},"own":{"model":"x"}}';
const judged =
  '{"id":"modr-1","model":"omni-guard-1","results":[{"flagged":false,"categories":{},"category_scores":{}}]}';
const nameless = '{"id":"modr-1","results":[{"flagged":false,"categories":{},"category_scores":{}}]}';

test("relayed answers name the model as the client did where that is set, and are the vendor's bytes elsewhere", async () => {
  for (const [path, model, body] of [
    ['/v1/embeddings', 'small', embedded],
    ['/v1/moderations', 'guard', judged],
    ['/v1/moderations', 'guard', nameless],
  ] as const)
    for (const [testbed, isRequested] of [
      [requested, true],
      [vendors, false],
    ] as const) {
      testbed.first.play({ headers: { 'content-type': 'application/json' }, body });
      const { status, text } = await testbed.post(path, { model, input: 'Hi' });
      assert.equal(status, 200, text);
      const named = body.replace('"text-small-v2"', '"small"').replace('"omni-guard-1"', '"guard"');
      assert.equal(text, isRequested ? named : body);
    }
});
