/** Alerts of whole gateways: found in real traffic, sent signed, tested by the command, wrong settings named. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { unreachableSinks } from '../../../plugins/alerts/config.ts';
import { alertAdmin } from '../../../plugins/common/domain/admin/alerts.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';

const secret = 'a secret of the webhook';
const standard = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const got: { headers: Record<string, unknown>; text: string }[] = [];
const hook = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    got.push({ headers: request.headers, text: Buffer.concat(chunks).toString() });
    response.end('{}');
  });
});
const vendor = createServer((request, response) => {
  request.resume();
  response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"down"}}');
});
const listen = (server: typeof hook) =>
  new Promise<string>((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)),
  );

let gateway: TestGateway;
let [hookOrigin, vendorOrigin] = ['', ''];

const yamlOf = (alerts: string) => `
gateway: test
listen: \${PORT}
plugins: [storage, request-log, auth, providers, models, route, protocol-convert, alerts, console]
providers: { acme: { speaks: { chat: "${vendorOrigin}/v1" }, keys: k } }
models:
  m: { owned_by: acme, price: { input: 1, output: 1 }, targets: [acme/m] }
  free: { owned_by: acme, targets: [acme/free] }
route: { attempts: 1 }
alerts:
${alerts.replace(/^/gm, '  ')}
`;

before(async () => {
  [hookOrigin, vendorOrigin] = await Promise.all([listen(hook), listen(vendor)]);
  gateway = await startGateway(
    yamlOf(`every: 1s
rules:
  model_success: { for: 0s, quiet: 0s, least: 3 }
  key_resting: off
  hushed: { kind: model_success, for: 0s, quiet: 0s, least: 3, sinks: [ops] }
sinks:
  ops: { type: webhook, url: "${hookOrigin}/alerts", secret: ["${standard}", ${secret}], allow_private: true }
  inside: { type: webhook, url: "${hookOrigin}/inside", secret: ${secret} }
  mail: { type: mail, to: [ops@example.test] }`),
  );
  await gateway.gateway.find(alertAdmin)!.mute('hushed', Date.now() + 3_600_000, 'oscar', 'a planned outage');
});
after(async () => {
  await gateway?.stop();
  hook.close();
  vendor.close();
});

const messages = () => got.map(({ text }) => JSON.parse(text) as Record<string, unknown>);

async function run(command: string, values: Record<string, string> = {}) {
  const found = gateway.gateway.commands.find(({ name }) => name === command);
  return found!.run(values);
}

test('a failing model and an unpriced model are two alerts, signed', async () => {
  await run('accounts create', { name: 'ada' });
  const made = (await run('keys create', { account: 'ada' })).json as { key: string };
  const call = (model: string) =>
    fetch(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${made.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
    });
  for (let count = 0; count < 4; count++) assert.ok((await call('m')).status >= 500);
  assert.equal((await call('free')).status, 404);
  const failing = await until('an alert of the model', () => messages().find(({ rule }) => rule === 'model_success'));
  assert.deepEqual(
    [failing['type'], failing['subject'], failing['value'], failing['gateway']],
    ['alert.begin', 'm', 0, 'test'],
  );
  const unpriced = await until('an alert of the price', () => messages().find(({ rule }) => rule === 'unpriced_model'));
  assert.equal(unpriced['subject'], 'free');
  for (const { headers, text } of got) {
    for (const receiver of [new Webhook(standard), new Webhook(secret, { format: 'raw' })])
      assert.deepEqual(receiver.verify(text, headers as Record<string, string>), JSON.parse(text));
    assert.throws(() => new Webhook('bm9uZSBvZiB0aGVt').verify(text, headers as Record<string, string>));
    assert.doesNotMatch(String(headers['webhook-id']), /\./);
    assert.doesNotMatch(text, /"k"|secret/);
  }
});

test('sinks that refuse are shown with the reason, and no address is quoted', async () => {
  const admin = gateway.gateway.find(alertAdmin)!;
  let faults: Record<string, string | undefined> = {};
  await until('each sink has been tried', async () => {
    const sinks = await admin.sinks();
    faults = Object.fromEntries(sinks.flatMap(({ name, last }) => (last === undefined ? [] : [[name, last.fault]])));
    return Object.keys(faults).length >= 3;
  });
  assert.equal(faults['ops'], undefined);
  assert.equal(faults['mail'], 'this gateway sends no mail: set console.smtp');
  assert.match(faults['inside']!, /private|public|port|allowed/);
  assert.doesNotMatch(faults['inside']!, /127\.0\.0\.1/);
});

test('`alerts test` sends a message, and prints why a sink refuses it', async () => {
  const before = got.length;
  assert.deepEqual((await run('alerts test', { sink: 'ops' })).json, { sink: 'ops', sent: true });
  assert.equal(messages()[before]!['type'], 'alert.test');
  await assert.rejects(run('alerts test', { sink: 'mail' }), /did not take it: this gateway sends no mail/);
  await assert.rejects(run('alerts test', { sink: 'nothing' }), /no sink "nothing": there are ops, inside, mail/);
  const { text } = await run('alerts list');
  assert.match(text, /runs {2}Share of requests that the model answers: m \(0\.0 %\)/);
});

test('rules are listed as they run, tried without an alert, and muted with an end: nothing is sent meanwhile, and what still runs afterwards', async () => {
  const admin = gateway.gateway.find(alertAdmin)!;
  const rules = new Map((await admin.rules()).map((rule) => [rule.name, rule]));
  assert.deepEqual([rules.get('key_resting')!.isOn, rules.get('model_success')!.threshold], [false, 0.9]);
  const { by, reason } = rules.get('hushed')!.muted!;
  assert.deepEqual([by, reason], ['oscar', 'a planned outage']);
  assert.deepEqual(await admin.tryRule('hushed'), [{ subject: 'm', value: 0, verdict: 'bad' }]);
  assert.equal(await admin.tryRule('key_resting'), undefined);
  assert.equal(await admin.mute('nothing', Date.now() + 1_000, 'oscar', 'no'), false);
  await until(
    'the muted alert runs',
    async () => (await admin.list({ rule: 'hushed' }, { limit: 5 })).rows.length === 1,
  );
  const ofHushed = () => messages().filter((message) => message['rule'] === 'hushed');
  assert.deepEqual(ofHushed(), []);
  assert.equal(await admin.unmute('hushed'), true);
  await until('it is sent', () => ofHushed().length > 0);
  assert.equal(ofHushed()[0]!['type'], 'alert.repeat');
});

test('a test of a sink is its last message, and `check` warns of addresses that no alert reaches', async () => {
  const admin = gateway.gateway.find(alertAdmin)!;
  assert.deepEqual(await admin.testSink('ops'), { fault: undefined });
  assert.match((await admin.testSink('inside'))!.fault!, /private|public|port|allowed/);
  assert.equal(await admin.testSink('nothing'), undefined);
  const inside = (await admin.sinks()).find(({ name }) => name === 'inside')!;
  assert.notEqual(inside.last!.fault, undefined);
  const warned = gateway.gateway.notices().filter(({ text }) => text.startsWith('alerts.sinks.'));
  assert.deepEqual(
    warned.map(({ level, text }) => [level, text.split(':')[0]]),
    [['warning', 'alerts.sinks.inside.url']],
  );
  const sink = (url: string, more = {}) => ({ sinks: { one: { type: 'webhook', url, ...more } } }) as never;
  for (const host of ['10.1.2.3', '[::1]', 'localhost', 'alerts', 'alerts.internal', '192.168.0.1.'])
    assert.equal(unreachableSinks(sink(`https://${host}/x`)).length, 1, host);
  for (const host of ['hooks.example.com', '1.1.1.1', '[2606:4700::1111]'])
    assert.equal(unreachableSinks(sink(`https://${host}/x`)).length, 0, host);
  assert.deepEqual(unreachableSinks(sink('https://10.1.2.3/x', { allow_private: true })), []);
});

test('a mail sink needs the plugin that sends mail', async () => {
  const file = yamlOf('sinks: { mail: { type: mail, to: [ops@example.test] } }').replace(', console]', ']');
  await assert.rejects(startGateway(file), {
    message:
      /alerts\.sinks\.mail\.type: "mail" needs the service "mailers", which no plugin of the list provides: add "console" to the list$/,
  });
});

test('each wrong setting is reported in one sentence', async () => {
  const problems = async (alerts: string) => {
    const checked = await startGateway(yamlOf(alerts)).then(
      async (started) => {
        await started.stop();
        return [] as string[];
      },
      (error: Error) => error.message.split('\n'),
    );
    return checked.map((line) => line.replace(/^.*?yaml:\d+:? ?/, ''));
  };
  const found = await problems(`sinks:
  ops: { type: webhok, url: x }
  hook: { type: webhook, url: "https://h.example", secret: short }
rules:
  model_succes: { threshold: 0.5 }
  slow: { kind: model_first_byte, threshold: 10, clear: 20 }
  spend_spike: { sinks: [nowhere] }`);
  const all = found.join('\n');
  assert.match(all, /there is no type of sink "webhok".*"webhook"/);
  assert.match(all, /there is no kind of alert "model_succes".*"model_success"/);
  assert.match(all, /must not be above the threshold, 10/);
  assert.match(all, /names the sink "nowhere", which is not set/);
  assert.match(all, /secret/);
});
