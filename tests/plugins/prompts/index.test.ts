/** The plugin's remarks on rules, and rules one after the other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { call } from '../../../plugins/common/domain/calls.ts';
import { type PromptRule, promptRules, prompts } from '../../../plugins/common/wire/prompt-rules.ts';
import plugin from '../../../plugins/prompts/index.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';

const endpoint = (operation: string, more = {}) =>
  ({ method: 'POST', path: `/v1/${operation}`, operation, setsOnOpen: [call], charges: true, ...more }) as const;
const endpoints = [endpoint('chat'), endpoint('embeddings'), endpoint('anything', { setsOnOpen: [] })];

async function started(rules: readonly PromptRule[]) {
  const host = fakeHost({ endpoints: () => endpoints });
  for (const rule of rules) host.extend(prompts, rule);
  return { host, instance: await setUp(plugin, host) };
}

test('a rule that names operations has remarks on those that it does not see, and on those without texts', async () => {
  const { instance } = await started([
    { name: 'all', prompt() {} },
    { name: 'some', operations: ['chat'], prompt() {} },
    { name: 'misspelled', operations: ['chats'], prompt() {} },
  ]);
  const texts = instance.checks!.notices!().map(({ text }) => text);
  assert.deepEqual(texts, [
    'The prompt rule "all" does not see these operations: anything.',
    'The prompt rule "some" does not see these operations: anything, embeddings.',
    'The prompt rule "misspelled" names the operation "chats", which no endpoint of this gateway has.',
    'The prompt rule "misspelled" does not see these operations: anything, chat, embeddings.',
  ]);
  assert.ok(instance.checks!.notices!().every(({ level }) => level === 'warning'));
});

test('only endpoints whose operation a rule reads are entered', async () => {
  const { instance } = await started([{ name: 'some', operations: ['chat'], prompt() {} }]);
  assert.deepEqual(
    endpoints.filter((one) => instance.applies!(one)).map(({ operation }) => operation),
    ['chat'],
  );
  const none = await started([]);
  assert.ok(endpoints.every((one) => !none.instance.applies!(one)));
});

test('rules run in order, later ones read the texts of earlier ones, and a refusal ends them', async () => {
  const seen: string[] = [];
  const { host } = await started([
    {
      name: 'first',
      prompt({ texts: [text] }) {
        seen.push(`first ${text!.text}`);
      },
    },
    {
      name: 'second',
      async prompt(prompt) {
        await Promise.resolve();
        prompt.replace(prompt.texts[0]!, 'changed');
      },
    },
    {
      name: 'third',
      prompt({ texts: [text] }) {
        seen.push(`third ${text!.text}`);
        if (seen.length > 2) throw new GatewayError('forbidden', 'No.');
      },
    },
  ]);
  const rules = host.find(promptRules)!;
  const context = { operation: 'realtime', find: () => undefined };
  const passed = await rules.pass(Buffer.from('{"text":"a"}'), context);
  assert.equal(Buffer.from(passed!).toString(), '{"text":"changed"}');
  assert.deepEqual(seen, ['first a', 'third changed']);
  await assert.rejects(async () => rules.pass(Buffer.from('{"text":"a"}'), context), { kind: 'forbidden' });
});
