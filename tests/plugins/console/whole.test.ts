/** The console on the whole demo gateway: what people do there, with everything that is really behind it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { connect } from '../../../core/process/connect/connect.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { watchDelay } from '../../helpers/delay.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import type { Browser, Reply } from './browser.ts';
import { firstToken, operator, signIn, startDemo, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
let boss: Browser;
let ada: Browser;
let accountId: string;
let key: { id: string; key: string };

before(async () => {
  testbed = await startDemo();
  boss = testbed.browser();
  await boss.send('/first-operator', { body: { token: firstToken(testbed), ...operator } });
  await signIn(boss, operator);
  ada = testbed.browser();
  const who = { email: 'ada@example.test', password: 'another long password', name: 'Ada' };
  await ada.send('/auth/sign-up/email', { body: who });
  accountId = (await ada.send('/me')).json.account.id;
});
after(() => testbed.stop());

const once = () => ({ 'idempotency-key': crypto.randomUUID() });
const call = (bearer: string, model = 'gpt-5.4-mini') =>
  fetch(`${testbed.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  });

/** Asks until the answer is right: rows are written behind the request's back. */
async function eventually(send: () => Promise<Reply>, isRight: (reply: Reply) => boolean): Promise<Reply> {
  let reply = await send();
  for (let attempt = 0; attempt < 100 && !isRight(reply); attempt++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    reply = await send();
  }
  assert.ok(isRight(reply), reply.text.slice(0, 1_000));
  return reply;
}

test('every page has its service here', async () => {
  const { features } = (await boss.send('/me')).json;
  const lacking = Object.keys(features).filter((name) => features[name] === false);
  assert.deepEqual(lacking, ['payments', 'guardrails']);
});

test("an account is found by its person's name, and shows the person", async () => {
  for (const text of ['ADA', 'ada@example', accountId]) {
    const { rows } = (await boss.send(`/admin/accounts?text=${encodeURIComponent(text)}`)).json;
    const found = rows.find(({ id }: { id: string }) => id === accountId);
    assert.equal(found.person.email, 'ada@example.test', text);
  }
  assert.deepEqual((await boss.send('/admin/accounts?text=no-such-account')).json.rows, []);
});

test('an operator credits an account once, and its owner sees it at once', async () => {
  const headers = once();
  const body = { amount: '20', reason: 'an invoice' };
  for (let attempt = 0; attempt < 2; attempt++)
    assert.equal((await boss.send(`/admin/accounts/${accountId}/credit`, { body, headers })).status, 200);
  const wallet = (await ada.send('/wallet')).json;
  assert.deepEqual([wallet.balance, wallet.blocked, wallet.spendable], ['20.00', '0.00', '20.00']);
  assert.equal(
    wallet.grants.some(({ reason }: { reason: string }) => reason === 'an invoice'),
    true,
  );
  const { rows } = (await ada.send('/wallet/ledger')).json;
  assert.deepEqual([rows[0].kind, rows[0].change, rows[0].balanceAfter], ['CREDIT', '20.00', '20.00']);
});

test('a key is made, calls, and the call is found with its price and formula', async () => {
  const made = await ada.send('/keys', { body: { name: 'laptop', project: 'web', limits: { rpm: 100 } } });
  assert.equal(made.status, 200, made.text);
  key = made.json;
  assert.equal((await call(key.key)).status, 200);
  const usage = await eventually(
    () => ada.send('/usage'),
    ({ json }) => json.rows[0]?.cost !== undefined && json.rows[0].cost !== null,
  );
  const [row] = usage.json.rows;
  assert.deepEqual([row.model, row.status, row.keyId], ['gpt-5.4-mini', 200, key.id]);
  const { charge, request, attempts } = (await ada.send(`/usage/${row.id}`)).json;
  assert.equal(charge.cost, row.cost);
  assert.match(charge.formula, /input × .*output × /);
  assert.equal(attempts.length, 1);
  assert.equal('provider' in request || 'provider' in attempts[0], false);
  const balance = (await ada.send('/wallet')).json.balance;
  assert.equal(parseUsd('20') - parseUsd(balance), parseUsd(charge.cost));

  const seen = (await boss.send(`/admin/requests/${row.id}`)).json;
  assert.equal(seen.request.accountId, accountId);
  assert.ok(seen.attempts[0].provider.length > 0);
  assert.ok(seen.story.length > 0);
});

/** For cells without a comma in them. */
function rowsOfCsv(text: string): Record<string, string>[] {
  const [head, ...lines] = text
    .trimEnd()
    .split('\r\n')
    .map((line) => line.split(','));
  return lines.map((cells) => Object.fromEntries(head!.map((name, index) => [name, cells[index]!])));
}

test('home page, sums, series and models include that call', async () => {
  const home = (await ada.send('/home')).json;
  assert.equal(home.today.requests, 1);
  assert.equal(home.byModel[0].model, 'gpt-5.4-mini');
  assert.equal(home.byDay.length, 30);
  assert.equal(home.byDay.at(-1).requests, 1);
  const sums = (await ada.send('/usage/sums')).json;
  assert.deepEqual([sums.requests, sums.results.ok, sums.cost], [1, 1, home.month.cost]);
  const series = (await ada.send('/usage/series')).json;
  assert.equal(
    series.rows.reduce((sum: number, row: { requests: number }) => sum + row.requests, 0),
    1,
  );
  const activity = (await ada.send('/usage/activity?by=model')).json;
  assert.deepEqual(
    activity.groups.map(({ group }: { group: string }) => group),
    ['gpt-5.4-mini'],
  );
  const [{ series: ofModel }] = activity.groups;
  assert.deepEqual(ofModel, activity.all, 'one model made all of it');
  assert.equal(ofModel.at(-1).requests, 1);
  assert.equal(ofModel.at(-1).cost, sums.cost);
  assert.equal(ofModel.at(-1).tokens, sums.tokens);
  const byProject = (await ada.send('/usage/activity?by=project')).json;
  assert.deepEqual(byProject.groups, [{ group: 'web', series: byProject.all }], 'its key is in this project');
  assert.equal(byProject.all.at(-1).cost, sums.cost);
  assert.deepEqual((await ada.send('/usage/sums?project=web')).json.cost, sums.cost);
  const rowsOf = async (path: string) => (await ada.send(path)).json.rows.length;
  assert.deepEqual([await rowsOf('/usage?project=web'), await rowsOf('/usage?project=-')], [1, 0]);
  assert.equal((await boss.send('/admin/monitor?project=web')).json.cost, sums.cost);
  assert.equal((await boss.send('/admin/monitor?project=other')).json.requests, 0);
  assert.deepEqual((await boss.send('/admin/projects')).json.rows, [{ project: 'web', keys: 1 }]);
  const model = (await ada.send('/models')).json.rows.find(({ id }: { id: string }) => id === 'gpt-5.4-mini');
  assert.equal(model.lastHour.requests, 1);
  assert.ok(model.prices.lines.some((line: { class: string }) => line.class === 'input'));
  const usageRows = rowsOfCsv((await ada.send('/usage.csv?tz=Pacific/Kiritimati')).text);
  const [request] = (await ada.send('/usage')).json.rows;
  const here = Temporal.Instant.from(request.receivedAt).toZonedDateTimeISO('Pacific/Kiritimati');
  const { input, output } = request.usage;
  assert.deepEqual(
    usageRows.map(({ day, key, project, outcome, cost, inputTokens, outputTokens, firstByteMs }) => [
      ...[day, key, project, outcome, cost, inputTokens, outputTokens],
      Number(firstByteMs) > 0 && firstByteMs!.length < 10,
    ]),
    [[here.toPlainDate().toString(), 'laptop', 'web', 'complete', request.cost, `${input}`, `${output}`, true]],
  );
  const [charged] = (await ada.send('/wallet/ledger?kind=CHARGE')).json.rows;
  assert.deepEqual(
    [charged.model, charged.keyName, charged.usage, charged.requestId],
    ['gpt-5.4-mini', 'laptop', request.usage, request.id],
  );
  const [line] = rowsOfCsv((await ada.send('/wallet/ledger.csv?kind=CHARGE&tz=Pacific/Kiritimati')).text);
  assert.deepEqual(
    [line!['day'], line!['kind'], line!['model'], line!['key'], line!['inputTokens'], line!['change']],
    [here.toPlainDate().toString(), 'call', 'gpt-5.4-mini', 'laptop', `${input}`, `-${request.cost}`],
  );
});

test('everyone sees models with prices and their recent success, and nothing else', async () => {
  const stranger = testbed.browser();
  const models = (await stranger.send('/public/models')).json.rows;
  assert.ok(models.some(({ id }: { id: string }) => id === 'gpt-5.4-mini'));
  assert.ok(models.every(({ prices }: { prices: { lines: unknown[] } }) => prices.lines.length > 0));
  const painter = models.find(({ id }: { id: string }) => id === 'gpt-image-2');
  assert.deepEqual(painter.limits, {
    prompt: 32_000,
    images: 10,
    references: 16,
    size: '3840x2160',
    qualities: ['low', 'medium', 'high'],
  });
  const { at, rows } = (await stranger.send('/public/status')).json;
  const used = rows.find(({ id }: { id: string }) => id === 'gpt-5.4-mini');
  assert.equal(at.length, 48);
  assert.deepEqual([used.uptime, used.hours.at(-1)], [null, null], 'one call says too little');
  const text = JSON.stringify([models, rows]);
  const { rows: upstreams } = (await boss.send('/admin/upstreams')).json;
  for (const word of ['"ownedBy"', '"provider"', '"requests"', '"version"', 'ada@'])
    assert.ok(!text.includes(word), word);
  assert.ok(upstreams.length > 0);
});

test('browsers at the root are redirected to the page of models, and programs get the usual answer', async () => {
  const page = await fetch(testbed.origin, { headers: { accept: 'text/html,*/*' }, redirect: 'manual' });
  assert.deepEqual([page.status, page.headers.get('location')], [302, '/console/welcome']);
  const program = await fetch(testbed.origin);
  assert.deepEqual([program.status, await program.text()], [200, '{"status":"ok"}']);
  assert.equal(program.headers.get('vary'), 'accept');
});

test('requests of the console are not in the request log', async () => {
  const monitor = (await boss.send('/admin/monitor')).json;
  assert.equal(monitor.requests, 1);
  assert.equal((await boss.send('/admin/monitor/groups?by=operation')).json.rows.length, 1);
  assert.ok(parseUsd(monitor.cost) > 0n);
  const [group] = (await boss.send('/admin/monitor/groups?by=provider')).json.rows;
  const upstreams = (await boss.send('/admin/upstreams')).json.rows as { provider: string; ownCost: string | null }[];
  assert.equal(upstreams.find(({ provider }) => provider === group.group)?.ownCost, group.ownCost);
  assert.deepEqual(
    [group.ownCost, group.margin, monitor.margin, group.ownCostUnknown],
    [null, null, null, 1],
    'the demo names no own costs',
  );
});

test('a code credits money, a plan is bought with it, and both are in the ledger', async () => {
  const gift = { kind: 'balance', amount: '15' };
  const codes = (await boss.send('/admin/codes', { body: { gift, count: 1, batch: 'spring' } })).json;
  const redeemed = await ada.send('/wallet/redeem', { body: { code: codes.codes[0] } });
  assert.deepEqual([redeemed.status, redeemed.json.amount], [200, '15.00'], redeemed.text);
  assert.equal((await ada.send('/wallet/redeem', { body: { code: codes.codes[0] } })).status, 409);
  const headers = once();
  for (let attempt = 0; attempt < 2; attempt++) {
    const bought = await ada.send('/wallet/plans/pro', { method: 'POST', headers });
    assert.deepEqual([bought.status, bought.json.plan, bought.json.price], [200, 'pro', '20.00'], bought.text);
  }
  assert.equal((await ada.send('/me')).json.account.plan, 'pro');
  const kinds = (await ada.send('/wallet/ledger')).json.rows.map(({ kind }: { kind: string }) => kind);
  assert.equal(kinds.filter((kind: string) => kind === 'PURCHASE').length, 1);
  const used = (await boss.send('/admin/codes?batch=spring')).json.rows[0];
  assert.deepEqual([used.uses, used.gift.amount], [1, '15.00']);
});

test('a charge is refunded in parts, and never beyond its amount', async () => {
  const [row] = (await boss.send('/admin/requests')).json.rows;
  const refund = (amount: string) =>
    boss.send(`/admin/requests/${row.id}/refund`, { body: { amount, reason: 'it was slow' }, headers: once() });
  assert.equal((await refund(row.cost)).status, 200);
  assert.ok((await refund(row.cost)).status >= 400);
  const reply = (await ada.send(`/usage/${row.id}`)).json;
  assert.equal(reply.charge.refunded, reply.charge.cost);
  const [home, sums] = [(await ada.send('/home')).json.today, (await ada.send('/usage/sums')).json];
  for (const { cost, refunded, spent } of [home, sums])
    assert.deepEqual([refunded, parseUsd(spent)], [row.cost, parseUsd(cost) - parseUsd(row.cost)]);
});

test('an operator changes plan and ratio, and disables and enables an account', async () => {
  const change = (what: string, body: object) => boss.send(`/admin/accounts/${accountId}/${what}`, { body });
  assert.equal((await change('plan', { plan: 'free', reason: 'as asked' })).status, 200);
  assert.equal((await ada.send('/me')).json.account.plan, 'free');
  assert.equal((await change('plan', { plan: 'nothing', reason: 'x' })).json.error.field, 'plan');
  const over = await change('plan', { plan: 'pro', endsAt: '2020-01-01T00:00:00Z', reason: 'x' });
  assert.deepEqual([over.status, over.json.error.field], [400, 'endsAt']);
  assert.equal((await change('multiplier', { multiplier: '1.5', reason: 'a deal' })).status, 200);
  assert.equal((await boss.send(`/admin/accounts/${accountId}`)).json.account.multiplier, '1.5');
  assert.equal((await change('retention', { retention: 'none', reason: 'by contract' })).status, 200);
  assert.equal((await ada.send('/me')).json.account.retention, 'none');
  assert.equal((await change('retention', { retention: 'some', reason: 'x' })).status, 400);
  assert.equal((await change('retention', { retention: null, reason: 'it has ended' })).status, 200);
  assert.equal((await boss.send(`/admin/accounts/${accountId}`)).json.account.retention, null);
  const model = (await ada.send('/models')).json.rows.find(({ id }: { id: string }) => id === 'gpt-5.4-mini');
  assert.equal(model.prices.ratio, '1.5');
  assert.equal((await change('disable', { reason: 'abuse' })).status, 200);
  const refused = await eventually(
    async () => ({ ...(await replyOf(call(key.key))) }),
    ({ status }) => status === 403,
  );
  assert.equal(refused.status, 403);
  assert.equal((await change('enable', { reason: 'talked' })).status, 200);
  await eventually(
    async () => replyOf(call(key.key)),
    ({ status }) => status === 200,
  );
});

async function replyOf(response: Promise<Response>): Promise<Reply> {
  const { status, headers } = await response;
  return { status, headers, text: String(status), json: undefined };
}

test('with upstreams disabled, requests go elsewhere or nowhere', async () => {
  const { rows } = (await boss.send('/admin/upstreams')).json;
  assert.ok(rows.length > 3);
  assert.equal(JSON.stringify(rows).includes('sk-'), false);
  const { provider } = rows[0];
  const stop = await boss.send(`/admin/upstreams/${provider}/disable`, { body: { reason: 'an outage' } });
  assert.equal(stop.status, 200);
  const after = (await boss.send('/admin/upstreams')).json.rows.find(
    (row: { provider: string }) => row.provider === provider,
  );
  assert.equal(after.disabled, true);
  await boss.send(`/admin/upstreams/${provider}/enable`, { body: { reason: 'it is over' } });
  assert.equal((await boss.send('/admin/upstreams/nothing/wake', { body: { reason: 'x' } })).status, 404);
});

test('prices have their versions, and a quote has a formula to check', async () => {
  const { rows } = (await boss.send('/admin/prices')).json;
  assert.ok(rows.length > 20);
  const usage = { input: 1_000_000, output: 1_000_000 };
  const quote = await boss.send('/admin/prices/quote', { body: { model: 'gpt-5.4-mini', usage } });
  assert.equal(quote.status, 200, quote.text);
  assert.ok(parseUsd(quote.json.cost) > 0n);
});

test('an image is ordered, and shown to its owner alone', async () => {
  const answer = await fetch(`${testbed.origin}/v1/images/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-image-2', prompt: 'a paper lighthouse' }),
  });
  assert.ok(answer.status < 300, await answer.text());
  const tasks = await eventually(
    () => ada.send('/tasks'),
    ({ json }) => json.rows[0]?.state === 'succeeded',
  );
  const [task] = tasks.json.rows;
  const picture = new URL(task.results[0].url, testbed.origin);
  assert.equal((await fetch(`${testbed.origin}${picture.pathname}${picture.search}`)).status, 200);
  assert.equal((await boss.send('/admin/tasks')).json.rows[0].accountId, accountId);
  assert.ok(Date.parse(task.results[0].expiresAt) > Date.now() + 6 * 86_400_000, 'files are kept for seven days');
  const rowsOf = async (query: string) => (await boss.send(`/admin/requests?${query}`)).json.rows;
  const order = (
    await eventually(
      () => boss.send(`/admin/requests/${task.requestId}`),
      ({ status }) => status === 200,
    )
  ).json.request;
  assert.equal(typeof order.provider, 'string', 'the only one that makes it');
  const ofProvider: { id: string }[] = await rowsOf(`provider=${order.provider}&operation=${order.operation}`);
  assert.deepEqual(
    ofProvider.map(({ id }) => id),
    [task.requestId],
  );
  const groups = (await boss.send('/admin/monitor/groups?by=provider')).json.rows;
  assert.ok(groups.some(({ group }: { group: string }) => group === order.provider));
  await eventually(
    () => boss.send('/admin/requests?operation=files'),
    ({ json }) => json.rows.length > 0,
  );
  const operations = new Set((await rowsOf('limit=500')).map(({ operation }: { operation: string }) => operation));
  assert.equal(operations.has('files'), false, 'a picture that is shown is no traffic of models');
  const everything = new Set(
    (await rowsOf('limit=500&traffic=all')).map(({ operation }: { operation: string }) => operation),
  );
  assert.ok(everything.has('files'));
  assert.equal((await boss.send('/tasks')).json.rows.length, 0);
  assert.equal((await boss.send(`/tasks/${task.id}`)).status, 404);
});

test('the ledger reconciles, and nodes, totals and the file are shown', async () => {
  const checked = await boss.send('/admin/money/reconcile', { method: 'POST' });
  assert.equal(checked.status, 200, checked.text);
  assert.deepEqual([checked.json.ok, checked.json.findings], [true, []]);
  const totals = (await boss.send('/admin/money')).json;
  assert.equal(totals.sold, '20.00');
  assert.ok(parseUsd(totals.cost) > 0n);
  assert.ok((await boss.send('/admin/nodes')).json.rows.some(({ self }: { self: boolean }) => self));
  const config = (await boss.send('/admin/config')).json;
  assert.ok(config.files.length > 1);
  const places = config.notices.map(({ where }: { where: string | null }) => where?.replace(/:\d+$/, ''));
  const names = config.files.map(({ name }: { name: string }) => name);
  assert.ok(places.some((name: string) => names.includes(name)));
  const [{ name, text }] = config.files;
  const wrong = await boss.send('/admin/config/check', { body: { file: name, text: `${text}\nnonsense: 1\n` } });
  assert.ok(wrong.json.problems.length > 0);
});

test('a program is connected with a key that a person allows in the console, and the key is theirs', async () => {
  const home = temporaryDirectory('connected-');
  const shown: string[] = [];
  const { text } = await connect(
    'claude-code',
    { yes: true },
    {
      command: () => 'connect',
      home,
      environment: { GATEWAY_URL: testbed.origin },
      show: (line) => void shown.push(line),
      async wait() {
        const code = /code=([A-Z-]+)/.exec(shown[0]!)![1]!;
        const cap = { amount: '2', every: 'day' };
        const reply = await ada.send(`/connect/requests/${code}/grant`, { body: { name: 'Claude Code here', cap } });
        assert.equal(reply.status, 200, reply.text);
      },
    },
  );
  assert.match(text, /^claude-\S+ has answered\. Next: claude\n/);
  const { env } = JSON.parse(readFileSync(join(home, '.claude/settings.json'), 'utf8'));
  assert.match(env.ANTHROPIC_MODEL, /^claude-(?!haiku)/);
  assert.match(env.ANTHROPIC_DEFAULT_HAIKU_MODEL, /^claude-haiku/);
  assert.ok(Number(env.CLAUDE_CODE_MAX_CONTEXT_TOKENS) >= 200_000);
  const { rows } = (await ada.send('/keys')).json;
  const made = rows.find(({ name }: { name: string }) => name === 'Claude Code here');
  assert.ok(env.ANTHROPIC_AUTH_TOKEN.startsWith(made.prefix) && made.cap.amount === '2.00');
});

test('live numbers change with a call', async () => {
  const page = new WebSocket(`${testbed.origin.replace('http', 'ws')}/console/live`, {
    headers: { cookie: ada.cookieHeader(), origin: testbed.origin },
  });
  const balances: string[] = [];
  page.on('message', (data) => {
    const message = JSON.parse(String(data)) as { topic: string; balance: string };
    if (message.topic === 'balance') balances.push(message.balance);
  });
  await new Promise((resolve, reject) => page.once('open', resolve).once('error', reject));
  const until = async (count: number) => {
    for (let attempt = 0; attempt < 100 && balances.length < count; attempt++)
      await new Promise((resolve) => setTimeout(resolve, 100));
    assert.ok(balances.length >= count, `${balances.length} messages`);
  };
  await until(1);
  await call(key.key);
  await until(2);
  assert.notEqual(balances[0], balances[1]);
  page.terminate();
});

test('a rotated key works by both secrets, for its owner and for an operator, and its audit row has neither', async () => {
  const rotated = await ada.send(`/keys/${key.id}/rotate`, { method: 'POST', body: { overlapHours: 1 } });
  assert.equal(rotated.status, 200, rotated.text);
  const path = `/admin/accounts/${accountId}/keys/${key.id}/rotate`;
  assert.equal((await ada.send(path, { method: 'POST', body: { overlapHours: 1, reason: 'x' } })).status, 403);
  const again = await boss.send(path, { method: 'POST', body: { overlapHours: 1, reason: 'leaked' } });
  assert.equal(again.status, 200, again.text);
  const secrets = [key.key, rotated.json.key, again.json.key];
  for (const secret of secrets) assert.equal((await replyOf(call(secret))).status, 200);
  const { rows } = (await ada.send('/keys')).json;
  const row = rows.find(({ id }: { id: string }) => id === key.id);
  assert.deepEqual(
    [row.prefix, ...row.replaced.map(({ prefix }: { prefix: string }) => prefix)].toSorted(),
    secrets.map((secret: string) => secret.slice(0, row.prefix.length)).toSorted(),
  );
  const audit = (await boss.send('/admin/audit?limit=50')).text;
  for (const secret of secrets) assert.ok(!audit.includes(secret.slice(20)));
  for (const overlapHours of [721, -1, 1.5])
    assert.equal((await ada.send(`/keys/${key.id}/rotate`, { method: 'POST', body: { overlapHours } })).status, 400);
});

test('a revoked key is refused within a second', async () => {
  assert.equal((await ada.send(`/keys/${key.id}`, { method: 'DELETE' })).status, 200);
  const delay = watchDelay();
  const revokedAt = performance.now();
  await eventually(
    async () => replyOf(call(key.key)),
    ({ status }) => status === 401,
  );
  assert.ok(performance.now() - revokedAt < delay.allowedMs(2_000));
});

test('every change of this file is in the audit log, executed or refused', async () => {
  const { rows } = (await boss.send('/admin/audit?limit=500')).json;
  const actions = new Set(rows.map(({ action }: { action: string }) => action));
  for (const action of [
    'account.credit',
    'key.create',
    'key.grant',
    'code.redeem',
    'plan.buy',
    'request.refund',
    'account.plan',
    'account.multiplier',
    'account.retention',
    'account.disable',
    'upstream.disable',
    'key.rotate',
    'account.key.rotate',
    'key.revoke',
  ])
    assert.ok(actions.has(action), action);
  assert.equal(
    rows.some(({ result }: { result: string }) => result === 'begun'),
    false,
  );
  for (const row of rows) assert.equal(row.address, '127.0.0.1');
});

test('rows of the audit log have the values before and after a change, and the person or the token that made it', async () => {
  const operator = { role: 'operator', actorKind: 'person', actorId: (await boss.send('/me')).json.person.id };
  const newest = async (action: string) => (await boss.send(`/admin/audit?action=${action}&limit=1`)).json.rows[0];
  const shown = async (action: string) => {
    const { role, actorKind, actorId, changes } = await newest(action);
    assert.deepEqual({ role, actorKind, actorId }, operator, action);
    return changes;
  };
  assert.deepEqual(await shown('account.multiplier'), [{ field: 'multiplier', before: '1', after: '1.5' }]);
  assert.deepEqual(await shown('account.retention'), [{ field: 'retention', before: 'none', after: null }]);
  assert.deepEqual(await shown('account.enable'), [{ field: 'disabled', before: 'true', after: 'false' }]);
  assert.deepEqual((await shown('upstream.disable'))[0], { field: 'disabled', before: 'false', after: 'true' });
  const renamed = { name: 'ci, renamed', cap: { amount: '3', every: 'day' } };
  const made = (await ada.send('/keys', { body: { name: 'ci' } })).json;
  assert.equal((await ada.send(`/keys/${made.id}`, { method: 'PATCH', body: renamed })).status, 200);
  const { actorId, changes } = await newest('key.change');
  assert.notEqual(actorId, operator.actorId);
  assert.deepEqual(changes, [
    { field: 'name', before: 'ci', after: 'ci, renamed' },
    { field: 'cap', before: null, after: '{"amount":"3.00","every":"day"}' },
  ]);
  const { view, token } = (await boss.send('/admin/tokens', { body: { name: 'nightly' } })).json;
  const body = { multiplier: null, reason: 'the deal is over' };
  const headers = { authorization: `Bearer ${token}` };
  assert.equal((await boss.send(`/admin/accounts/${accountId}/multiplier`, { body, headers })).status, 200);
  const byToken = await newest('account.multiplier');
  assert.deepEqual([byToken.actor, byToken.actorKind, byToken.actorId], ['nightly', 'token', view.id]);
  assert.deepEqual(byToken.changes, [{ field: 'multiplier', before: '1.5', after: '1' }]);
});

test('operators see calls, failures and costs of tools, and clients their prices', async () => {
  const made = (await ada.send('/keys', { body: { name: 'tools' } })).json;
  const callTool = async (city: string) => {
    const params = { name: 'sandbox__weather', arguments: { city } };
    const answer = await fetch(`${testbed.origin}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${made.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    return answer.text();
  };
  assert.match(await callTool('Oslo'), /Oslo/);
  assert.match(await callTool('Atlantis'), /There is no weather/);
  const found = await fetch(`${testbed.origin}/v1/search`, {
    method: 'POST',
    headers: { authorization: `Bearer ${made.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: 'lighthouses' }),
  });
  assert.equal(found.status, 200);
  const { json } = await eventually(
    () => boss.send('/admin/tools'),
    (reply) => reply.json.spent.length > 0,
  );
  const [server] = json.servers;
  assert.deepEqual([server.name, server.reached, server.calls, server.failed], ['sandbox', true, 2, 1]);
  assert.ok(Date.parse(server.lastFailure) > 0);
  assert.deepEqual(json.search, { name: 'tavily', calls: 1, failed: 0, lastFailure: null });
  assert.equal(json.spent[0].tool, 'sandbox__weather');
  assert.ok(Number(json.spent[0].cost) > 0);
  const own = (await ada.send('/pages/tools')).json;
  assert.deepEqual(own.bundles, ['harbour']);
  const prices = own.tools.map(({ name, price }: { name: string; price: string }) => `${name} ${price}`);
  assert.deepEqual(prices, ['sandbox__order 0.001', 'sandbox__time 0.001', 'sandbox__weather 0.001']);
});
