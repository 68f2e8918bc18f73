/** What becomes of losses and media, changed while the gateway serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { target } from '../../../plugins/common/domain/upstreams.ts';
import protocolConvert from '../../../plugins/protocol-convert/index.ts';
import { fakeHost, prepare, setUp } from '../../helpers/fakes.ts';
import { open, targetFor, wholeAnswer } from './harness.ts';

const answer = JSON.stringify({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
});

test('a loss is reported or refused as is said last; a chain that runs goes by what it began with', async () => {
  const part = await setUp(protocolConvert, fakeHost());
  const old = part.handle!;
  const send = async (handle: typeof old) => {
    const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }], logit_bias: { 1: 1 } };
    const { exchange } = open({ path: '/v1/chat/completions', body });
    exchange.set(target, targetFor('messages', 'm'));
    return (await handle(exchange, async () => wholeAnswer(answer))).headers['x-gateway-dropped'];
  };
  const commit = await prepare(protocolConvert, part, { on_loss: 'refuse' });
  assert.match((await send(part.handle!))!, /logit_bias/);
  commit();
  await assert.rejects(send(part.handle!), { kind: 'invalid_request', field: 'logit_bias' });
  assert.match((await send(old))!, /logit_bias/);
  await assert.rejects(prepare(protocolConvert, part, { on_loss: 'ignore' }));
  assert.deepEqual(part.reload?.members, ['on_loss', 'answer_model', 'media', 'translated_values', 'seal_secret']);
});
