/** Texts of messages, and hostile names in them, in each form that is sent. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { Host } from '../../../core/contract/contract.ts';
import type { z } from '../../../core/contract/schema.ts';
import { messageFor, messageOf, plainName, valueText } from '../../../plugins/alerts/message.ts';
import { chatSinks } from '../../../plugins/alerts/sinks/chats.ts';
import type { OpenAlert } from '../../../plugins/alerts/state.ts';
import { type AlertMessage, consolePages } from '../../../plugins/common/domain/admin/alerts.ts';
import { fakeHost } from '../../helpers/fakes.ts';

const bodies: { path: string; body: string }[] = [];
let answer = { status: 200, body: '{}' };
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    bodies.push({ path: request.url!, body: Buffer.concat(chunks).toString() });
    response.writeHead(answer.status).end(answer.body);
  });
});
before(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
after(() => server.close());

const hostile = '<!channel> <at user_id="all">@everyone **x** [a](https://evil.example)\n\u202Efoo\u0007 & co';
const message = (subject: string): AlertMessage =>
  messageOf({
    id: 'a1',
    event: 'begin',
    gateway: 'main',
    rule: 'unpriced_model',
    kind: 'unpriced_model',
    kindTitle: 'A model without a price was asked for',
    subject: plainName(subject),
    value: 3,
    threshold: 0,
    unit: 'count',
    fields: {},
    beganAt: 0,
    at: 0,
  });

async function sent(name: string, more: object = {}) {
  const type = chatSinks.find((one) => one.name === name)!;
  const webhook = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const config = (type.config as unknown as z.ZodType).parse({ webhook, allow_private: true, ...more });
  const sink = type.open(config as never, { ...fakeHost(), mailer: () => undefined });
  bodies.length = 0;
  await sink.send(message(hostile), AbortSignal.timeout(5_000));
  const [got] = bodies;
  return { path: got!.path, text: got!.body, body: JSON.parse(got!.body) };
}

test('a name is bounded and has no line breaks, control characters or direction marks', () => {
  assert.equal(plainName(' a\n\u202Eb\u0000\u200Bc\u2028 '), 'a b c');
  assert.equal([...plainName('𝒳'.repeat(500))].length, 120);
});

test('a message links to the page of alerts, and the one at the end has the good value', () => {
  const alert = {
    ...{ id: 'a1', rule: 'model_success', kind: 'model_success', title: 'A model fails', unit: 'share', subject: 'm' },
    ...{ value: 0.825, threshold: 0.95, fields: {}, beganAt: 0, version: 1 },
  } as unknown as OpenAlert;
  const address = (path: string) => `https://gateway.example/console${path}`;
  const find = ((service: unknown) => (service === consolePages ? { address } : undefined)) as Host['find'];
  const linked = { gateway: 'main', find };
  const begun = messageFor(alert, 'begin', linked, 0);
  assert.equal(begun.url, 'https://gateway.example/console/admin/alerts');
  assert.match(begun.text, /^Value: 82\.5 %, threshold: 95\.0 %$/m);
  assert.match(begun.text, /\nhttps:\/\/gateway\.example\/console\/admin\/alerts$/);
  const ended = messageFor(alert, 'end', linked, 60_000, 0.995);
  assert.deepEqual([ended.value, ended.was], [0.995, 0.825]);
  assert.match(ended.text, /^Value: 99\.5 %, was 82\.5 %, threshold: 95\.0 %$/m);
  const unmeasured = messageFor(alert, 'end', { gateway: 'main', find: () => undefined }, 60_000);
  assert.deepEqual([unmeasured.value, unmeasured.url], [null, undefined]);
  assert.match(unmeasured.text, /^Value: nothing is measured any more, was 82\.5 %/m);
  assert.equal(messageFor({ ...alert, unit: 'count', value: 3 }, 'end', linked, 1).value, 0);
});

test('values are written with their unit', () => {
  assert.deepEqual(
    [
      valueText(0.8251, 'share'),
      valueText(31_200, 'milliseconds'),
      valueText('-1.50', 'usd'),
      valueText('7.041666667', 'times'),
    ],
    ['82.5 %', '31.2 s', '-1.50 USD', '7.0 times the usual'],
  );
});

test('Slack: angle brackets and ampersands are escaped, and no text becomes a link', async () => {
  const { text, body } = await sent('slack');
  assert.doesNotMatch(text, /<!channel>|<at/);
  assert.match(body.text, /&lt;!channel&gt; .* &amp; co/);
  assert.equal(body.blocks[0].text.verbatim, true);
});

test('Discord: a message mentions no person, and Markdown is escaped', async () => {
  const { body } = await sent('discord');
  assert.deepEqual(body.allowed_mentions, { parse: [] });
  assert.match(body.content, /\\@everyone \\\*\\\*x\\\*\\\* \\\[a\\\]\\\(https\\:/);
});

test('Feishu and DingTalk: no tag mentions people, messages are signed, and a refusal inside a 200 is a failure', async () => {
  answer = { status: 200, body: '{"code":0}' };
  const feishu = await sent('feishu', { secret: 'a secret of feishu' });
  assert.doesNotMatch(feishu.body.content.text, /[<>@]/);
  // HMAC-SHA256 with the key "1800000000\na secret of feishu" over nothing.
  assert.equal(feishu.body.timestamp, '1800000000');
  assert.equal(Buffer.from(feishu.body.sign, 'base64').length, 32);
  answer = { status: 200, body: '{"errcode":0}' };
  const dingtalk = await sent('dingtalk', { secret: 'SEC1' });
  assert.match(dingtalk.path, /^\/hook\?timestamp=1800000000000&sign=[\w%]+$/);
  assert.deepEqual(dingtalk.body.at, { isAtAll: false });
  answer = { status: 200, body: '{"code":19021,"msg":"sign match fail"}' };
  await assert.rejects(sent('feishu'), /it refused the message \(code 19021\)/);
  answer = { status: 404, body: 'no_service' };
  await assert.rejects(sent('slack'), /it answered 404/);
});
