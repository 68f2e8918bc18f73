/** Hostile requests and answers under guardrails: texts that would be slow, forged and many placeholders, media, others' conversations. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  chatAnswer,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../../plugins/common/author/testing.ts';
import type { Judgement, TextsToJudge } from '../../../plugins/common/guardrails/checks.ts';
import { localChecks } from '../../../plugins/guardrails/checks/local.ts';
import { piecesOf } from '../../../plugins/guardrails/pieces.ts';
import { JsonTexts } from '../../../plugins/prompts/texts.ts';

let vendor: Vendor;
let gateway: TestGateway;
const keys: Record<string, string> = {};

before(async () => {
  vendor = await startVendor();
  const at = `${vendor.origin}/v1`;
  gateway = await startGateway({
    plugins: [
      ...['storage', 'files', 'auth', 'providers', 'models', 'guardrails', 'prompts', 'billing', 'route'],
      ...['protocol-convert', 'endpoints'],
    ],
    providers: { vendor: { keys: 'k', speaks: { chat: at, responses: at } } },
    models: { m: { owned_by: 'x', targets: ['vendor'], price: 'free' } },
    guardrails: {
      checks: {
        pii: { type: 'patterns', find: ['email', 'card', 'iban', 'phone', 'ip'], do: 'mask', restore: true },
        words: { type: 'words', list: ['banana'], message: 'No fruit.' },
      },
      policies: { base: ['pii'], strict: ['words'] },
      apply: [{ policy: 'base' }, { policy: 'strict', projects: ['strict'] }],
    },
  });
  for (const name of ['ada', 'eve']) {
    await gateway.run('accounts create', { name, credit: '1' });
    const made = await gateway.run('keys create', { account: name, name, project: name === 'eve' ? 'strict' : 'web' });
    keys[name] = (made as { key: string }).key;
  }
});
after(async () => {
  await gateway?.stop();
  await vendor?.stop();
});

const chat = (who: string, content: unknown) =>
  gateway.post(
    '/v1/chat/completions',
    { model: 'm', messages: [{ role: 'user', content }] },
    { authorization: `Bearer ${keys[who]}` },
  );
async function contentOf(answer: Response): Promise<string> {
  const json = (await answer.json()) as { choices: { message: { content: string } }[] };
  return json.choices[0]!.message.content;
}

const filled = (unit: string, length = 2 ** 19) => unit.repeat(Math.ceil(length / unit.length));

async function checkOf(type: string, config: object) {
  const found = localChecks.find((one) => one.name === type)!;
  const parsed = (found.config as unknown as { parse(value: unknown): unknown }).parse(config);
  const check = await found.open(parsed, {} as never);
  return async (text: string): Promise<Judgement> =>
    check.judge({ texts: [{ role: 'user', text }] } as unknown as TextsToJudge);
}

/** Milliseconds of processor: what else runs on the machine does not count. */
async function costOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

test('half a megabyte of any text is judged by all known patterns in less than a second, findings in each of its places included', async () => {
  const judge = await checkOf('patterns', { find: ['email', 'card', 'iban', 'phone', 'ip'] });
  const units = ['1', '1 ', 'a@', 'a.', 'AA11', 'DE89 3704 ', ':', '1.1.', '(030) ', 'a\u200b', '4111 1111 1111 1111 '];
  for (const unit of units) assert.ok((await costOf(() => judge(filled(unit)))) < 1_000, unit);
  for (const [unit, most] of [
    ['+49 170 1234567, ', 1_000],
    ['10.0.0.1 ', 1_000],
    ['ä@b.de ', 1_000],
  ] as const) {
    let count = 0;
    const cost = await costOf(async () => {
      count = (await judge(filled(unit))).found!.length;
    });
    assert.ok(count > 25_000, `${unit}: ${count}`);
    assert.ok(cost < most, `${unit}: ${Math.round(cost)} ms`);
  }
});

test('a list of 5,000 phrases with one beginning is looked for in half a megabyte of it in less than a second, and the longest one is found', async () => {
  const judge = await checkOf('words', {
    list: [...Array.from({ length: 5_000 }, (_, index) => `forbidden phrase ${index}`), 'C++ (new)', 'C+'],
  });
  assert.ok((await costOf(() => judge(filled('forbidden phrase ')))) < 1_000);
  const text = 'A forbidden \n phrase 4999, c++ (NEW) and c+ of mine';
  assert.deepEqual(
    (await judge(text)).found!.map(({ start, end }) => text.slice(start, end)),
    ['forbidden \n phrase 4999', 'c++ (NEW)', 'c+'],
  );
});

test('findings in each of 20,000 parts of one message are written in less than a second, also where one spans two parts', async () => {
  const parts = Array.from({ length: 20_000 }, (_, index) => ({ type: 'text', text: index === 7 ? 'ab' : 'a,' }));
  const prompt = new JsonTexts(Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: parts }] })));
  const [piece] = piecesOf(prompt, ({ kind }) => kind === 'text');
  const places = parts.map((_, index) => ({ start: index * 2, end: index * 2 + (index === 7 ? 3 : 1), by: '[X]' }));
  const cost = await costOf(() => piece!.write(new Map([[0, places.filter((_, index) => index !== 8)]])));
  assert.ok(cost < 1_000, `${Math.round(cost)} ms`);
  const { content } = (
    JSON.parse(Buffer.from(prompt.written()!).toString()) as { messages: { content: typeof parts }[] }
  ).messages[0]!;
  assert.deepEqual(
    content.slice(6, 10).map(({ text }) => text),
    ['[X],', '[X]', ',', '[X],'],
  );
});

test('placeholders that the model makes up, or that the client has sent by the thousand, stand for nothing', async () => {
  vendor.play(chatAnswer('[EMAIL-2] [CARD-1] [EMAIL-1001] [EMAIL-1]'));
  assert.equal(
    await contentOf(await chat('ada', 'ada@example.com')),
    '[EMAIL-2] [CARD-1] [EMAIL-1001] ada@example.com',
  );
  const flood = Array.from({ length: 20_000 }, (_, index) => `[EMAIL-${index + 1}]`).join(' ');
  vendor.play(chatAnswer('[EMAIL-1] [EMAIL-20000] [EMAIL-20001]'));
  const answer = await contentOf(await chat('ada', `${flood} ada@example.com`));
  assert.equal(answer, '[EMAIL-1] [EMAIL-20000] ada@example.com');
});

test('12,000 addresses in one prompt stay here, and the first 10,000 come back in the answer', async () => {
  const addresses = Array.from({ length: 12_000 }, (_, index) => `a${index}@example.com`);
  vendor.requests.length = 0;
  vendor.play(chatAnswer('[EMAIL-1] [EMAIL-10000] [EMAIL-12000]'));
  assert.equal(
    await contentOf(await chat('ada', addresses.join(' '))),
    'a0@example.com a9999@example.com [EMAIL-12000]',
  );
  assert.doesNotMatch(vendor.requests[0]!.body.toString(), /example\.com/);
});

test('calls of two accounts at the same time get their own texts back, and each the policies of its own project', async () => {
  vendor.play(chatAnswer('To [EMAIL-1].'));
  const calls = Array.from({ length: 20 }, (_, index) => ({ who: index % 2 === 0 ? 'ada' : 'eve', index }));
  const answers = await Promise.all(
    calls.map(async ({ who, index }) => contentOf(await chat(who, `Write to ${who}${index}@example.com`))),
  );
  assert.deepEqual(
    answers,
    calls.map(({ who, index }) => `To ${who}${index}@example.com.`),
  );
  assert.equal((await chat('ada', 'A banana')).status, 200);
  assert.equal((await chat('eve', 'A banana')).status, 400);
});

test('bytes of images and files are not changed, whatever numbers stand in them', async () => {
  vendor.requests.length = 0;
  vendor.play(chatAnswer('Seen.'));
  const data = Buffer.from(`${filled('\u00d7\u001d', 60)}4111111111111111`).toString('base64');
  const numbers = `${data}4111111111111111AAAA`;
  const media = [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${numbers}` } },
    { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${numbers}` } },
  ];
  const answer = await chat('ada', [{ type: 'text', text: 'From 4111 1111 1111 1111' }, ...media]);
  assert.equal(answer.status, 200);
  const sent = JSON.parse(vendor.requests[0]!.body.toString()) as { messages: { content: object[] }[] };
  assert.deepEqual(sent.messages[0]!.content, [{ type: 'text', text: 'From [CARD-1]' }, ...media]);
});

test('a prompt of ten megabytes is checked and answered in less than eight seconds of processor', async () => {
  vendor.play(chatAnswer('Read.'));
  const before = process.cpuUsage();
  const answer = await chat('ada', `${filled('1 2 3 4, a.b.c: ', 10 * 2 ** 20)} ada@example.com`);
  const { user, system } = process.cpuUsage(before);
  assert.equal(answer.status, 200);
  assert.match(vendor.requests.at(-1)!.body.subarray(-40).toString(), /\[EMAIL-1\]/);
  assert.ok((user + system) / 1_000 < 8_000, `${(user + system) / 1_000} ms`);
  await answer.text();
});
