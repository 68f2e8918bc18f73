/** What a token fixes of a live session's settings, in whatever case the client writes them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { constrained, pathsIn, resumes } from '../../../plugins/websockets/live/constraints.ts';
import { fc } from '../../helpers/properties.ts';

const message = (setup: object) => ({ data: Buffer.from(JSON.stringify({ setup })), isBinary: false });
const made = (requested: object, setup: object | undefined, fieldMask?: string) => {
  const { data } = constrained(message(requested), {
    setup: setup === undefined ? undefined : JSON.stringify(setup),
    fieldMask,
  });
  return (JSON.parse(data.toString()) as { setup: object }).setup;
};

test('with neither settings nor a mask the bytes are unchanged', () => {
  const requested = message({ model: 'models/a' });
  assert.equal(constrained(requested, { setup: undefined, fieldMask: undefined }), requested);
  const other = { data: Buffer.from('{"clientContent":{}}'), isBinary: true };
  assert.equal(constrained(other, { setup: '{"model":"models/a"}', fieldMask: undefined }), other);
});

test('without a mask all settings are those of the token', () => {
  const requested = { model: 'models/a', tools: [{}], session_resumption: { handle: 'h' } };
  assert.deepEqual(made(requested, { model: 'models/b', generationConfig: { topK: 1 } }), {
    sessionResumption: { handle: 'h' },
    model: 'models/b',
    generationConfig: { topK: 1 },
  });
  assert.deepEqual(made(requested, { generationConfig: {} }), {
    sessionResumption: { handle: 'h' },
    model: 'models/a',
    generationConfig: {},
  });
});

test('with a mask its fields are those of the token, also omitted ones', () => {
  const requested = {
    model: 'models/a',
    generation_config: { top_k: 9, temperature: 1, response_modalities: ['AUDIO'] },
    generationConfig: { temperature: 2, seed: 3 },
    systemInstruction: { parts: [{ text: 'no' }] },
  };
  const setup = { model: 'models/b', generationConfig: { responseModalities: ['TEXT'] } };
  const mask = 'model,generationConfig.responseModalities,generationConfig.temperature,system_instruction';
  assert.deepEqual(made(requested, setup, mask), {
    model: 'models/b',
    generation_config: { top_k: 9, responseModalities: ['TEXT'] },
    generationConfig: { seed: 3 },
  });
  assert.deepEqual(made({ model: 'models/a' }, undefined, 'model'), {});
});

test('for any client message, a fixed field has the value of the token alone', () => {
  const name = fc.constantFrom('model', 'top_k', 'topK', 'generationConfig', 'generation_config', 'constructor');
  const value = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, fc.integer(), fc.dictionary(name, tie('value'), { maxKeys: 4 })),
  })).value;
  fc.assert(
    fc.property(fc.dictionary(name, value, { maxKeys: 5 }), (requested) => {
      const setup = made(requested, { generationConfig: { topK: 7 } }, 'generationConfig.topK,model');
      const found: unknown[] = [];
      for (const [key, config] of Object.entries(setup)) {
        assert.notEqual(key, 'model');
        if (!/^generation_?config$/i.test(key) || typeof config !== 'object') continue;
        for (const [inner, value] of Object.entries(config ?? {})) if (/^top_?k$/i.test(inner)) found.push(value);
      }
      assert.deepEqual(found, [7]);
    }),
  );
});

test('masks are names of fields', () => {
  assert.deepEqual(pathsIn('a.b_c, model'), [['a', 'bC'], ['model']]);
  assert.deepEqual(pathsIn(''), []);
  for (const mask of ['a..b', '*', 'a.b[0]', ',', 'a-b', 'a.'.repeat(9), 'x,'.repeat(3_000)])
    assert.equal(pathsIn(mask), undefined, mask);
});

test('a session is continued by a handle', () => {
  assert.equal(resumes(message({ sessionResumption: { handle: 'h' } })), true);
  assert.equal(resumes(message({ session_resumption: { handle: '' } })), false);
  assert.equal(resumes(message({ sessionResumption: {} })), false);
});
