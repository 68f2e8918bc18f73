/** Forms with an audio file beyond the memory for them: on the disk until their call ends, sent again to the next target, bounded. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import { join, sep } from 'node:path';
import { after, before, test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { sourceOf } from '../../../plugins/common/audio/duration.ts';
import { Spool, type SpooledBody } from '../../../plugins/endpoints/audio/spool.ts';
import { wavTone } from '../../../plugins/sandbox/endpoints/tones.ts';
import { allowWrites, canForbidWrites } from '../../helpers/file-writes.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { until } from '../../helpers/until.ts';
import { openTestbed, type Testbed } from './setup.ts';

let testbed: Testbed;
before(async () => {
  testbed = await openTestbed(
    `
  ears: { owned_by: x, kind: transcription, targets: [first/a-longer-name, second/b], price: { audio: 0.36 } }
`,
    ['openai-transcriptions'],
    `endpoints: { file: 4MB, spool: { memory: 64KB, account: 2 } }
server: { body_limit: 100KB }`,
  );
});
after(() => testbed.stop());

const json = { 'content-type': 'application/json' };
const answer = '{"text":"hi","usage":{"type":"duration","seconds":1}}';
const talk = wavTone(40);
const form = (file: Uint8Array = talk) => {
  const made = new FormData();
  made.set('file', new File([new Uint8Array(file)], 'talk.wav', { type: 'audio/wav' }));
  made.set('model', 'ears');
  return made;
};
const transcribe = (body: FormData, options = {}) => testbed.post('/v1/audio/transcriptions', body, options);
const spooled = async () => {
  const found = await readdir(testbed.gateway.directory, { recursive: true });
  return found.filter((name) => name.includes(`spool${sep}`));
};

test('a form larger than the memory bound goes whole to the next target too, and is charged by its duration', async () => {
  assert.ok(talk.length > 1_000_000);
  testbed.first.play({ status: 503, headers: json, body: '{}' });
  testbed.second.play({ headers: { 'content-type': 'text/plain' }, body: 'hi' });
  const [first, second, count] = [
    testbed.first.requests.length,
    testbed.second.requests.length,
    (await testbed.charges(0)).length,
  ];
  const body = form();
  body.set('response_format', 'text');
  assert.equal((await transcribe(body)).text, 'hi');
  for (const [sent, name] of [
    [testbed.first.requests[first]!, 'a-longer-name'],
    [testbed.second.requests[second]!, 'b'],
  ] as const) {
    assert.equal(Number(sent.headers['content-length']), sent.body.length);
    const type = { 'content-type': String(sent.headers['content-type']) };
    const read = await new Response(new Uint8Array(sent.body), { headers: type }).formData();
    assert.deepEqual([read.get('model'), read.get('response_format')], [name, 'text']);
    assert.ok(Buffer.from(await (read.get('file') as File).arrayBuffer()).equals(talk));
  }
  const [charge] = await testbed.charges(count + 1);
  assert.deepEqual([charge!.detail.usage.audio, charge!.detail.estimated], [40, true]);
  assert.deepEqual(await spooled(), []);
});

test('a form has the same idempotency digest with any boundary', async () => {
  const headers = { 'idempotency-key': 'talk' };
  testbed.first.play({ headers: json, body: answer });
  const sent = testbed.first.requests.length;
  const made = await transcribe(form(), { headers });
  const again = await transcribe(form(), { headers });
  assert.deepEqual([made.text, again.text], [answer, answer]);
  assert.equal(testbed.first.requests.length, sent + 1);
  const other = await transcribe(form(wavTone(39)), { headers });
  assert.deepEqual([other.status, other.json.error.code], [409, 'idempotency_key_reused']);
});

test('a client that disconnects during its upload leaves nothing, and its slot is freed', async () => {
  for (let round = 0; round < 3; round++)
    await new Promise<void>((resolve) => {
      const { port } = new URL(testbed.gateway.origin);
      const headers = {
        authorization: `Bearer ${testbed.key}`,
        'content-type': 'multipart/form-data; boundary=b',
        'content-length': '2000000',
      };
      const path = '/v1/audio/transcriptions';
      const sending = request({ port, host: '127.0.0.1', method: 'POST', path, headers });
      sending.on('error', () => resolve());
      sending.write('--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n');
      sending.write(talk.subarray(0, 500_000));
      setTimeout(() => sending.destroy(new Error('left')), 150);
    });
  testbed.first.play({ headers: json, body: answer });
  await until('a place is free', async () => (await transcribe(form())).status === 200);
});

test('more concurrent forms of an account than its bound are refused, and so is a too large one', async () => {
  const { promise: hasRefused, resolve: answerBoth } = Promise.withResolvers<void>();
  const script = { headers: json, body: answer, after: hasRefused };
  testbed.first.play(script, script);
  const before = testbed.first.requests.length;
  const both = [transcribe(form()), transcribe(form())];
  await until('both are with the vendor', () => testbed.first.requests.length === before + 2);
  const third = await transcribe(form());
  assert.equal(third.status, 429);
  assert.match(third.json.error.message, /At most 2 forms/);
  answerBoth();
  for (const { status } of await Promise.all(both)) assert.equal(status, 200);
  const large = await transcribe(form(new Uint8Array(4 * 2 ** 20 + 1)));
  assert.deepEqual([large.status, large.json.error.param], [413, 'file']);
  const poor = await transcribe(form(), { key: testbed.poorKey });
  assert.equal(poor.status, 402);
});

const kept = async (body: SpooledBody, ...chunks: Uint8Array[]) => {
  async function* source() {
    yield* chunks;
  }
  for await (const _ of body.keep(source()));
};
const all = async (body: AsyncIterable<Uint8Array>) => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
};

test('in memory and on the disk a body reads the same, and the disk is bounded', async () => {
  const directory = join(temporaryDirectory('spool-'), 'spool');
  const limits = { memoryBytes: 8, bodies: 3, accountBodies: 3, diskBytes: 100 };
  const spool = new Spool(directory, () => limits, {
    bytes: (count: number) => Buffer.from(crypto.getRandomValues(new Uint8Array(count))),
  } as never);
  await spool.start();
  for (const chunks of [['abcd', 'efgh'], ['abcd', 'efgh', 'ijkl'], ['abcdefghijklmnopqrstuvwxyz']]) {
    const body = spool.enter('one', 50);
    await kept(body, ...chunks.map((text) => Buffer.from(text)));
    const text = chunks.join('');
    const changed = body.with([{ start: 2, end: 4, text: 'CDE' }]);
    const expected = `${text.slice(0, 2)}CDE${text.slice(4)}`;
    assert.deepEqual([await all(changed.open()), changed.bytes], [expected, expected.length]);
    assert.equal(await all(changed.open()), expected);
    const [span, whole] = [body.span(3, 4), sourceOf(Buffer.from(text).subarray(3, 7))];
    for (const [first, length] of [
      [0, 4],
      [2, 9],
      [4, 1],
      [9, 9],
    ] as const)
      assert.deepEqual(await span.read(first, length), await whole.read(first, length));
    await body.close();
  }
  const refused = (kind: string) => (error: unknown) => error instanceof GatewayError && error.kind === kind;
  const [one, two] = [spool.enter('one', 200), spool.enter('two', 200)];
  await kept(one, Buffer.alloc(60));
  await assert.rejects(kept(two, Buffer.alloc(60)), refused('overloaded'));
  await two.close();
  await one.close();
  const three = spool.enter('three', 90);
  await assert.rejects(kept(three, Buffer.alloc(91)), refused('too_large'));
  spool.enter('three', 1);
  spool.enter('three', 1);
  assert.throws(() => spool.enter('three', 1), refused('rate_limited'));
  assert.throws(() => spool.enter('four', 1), refused('overloaded'));
  assert.deepEqual(await readdir(directory), []);
});

if (canForbidWrites)
  test('a body that the disk does not accept is refused as overloaded, for any cause', async (context) => {
    const directory = join(temporaryDirectory('spool-'), 'spool');
    const limits = { memoryBytes: 8, bodies: 3, accountBodies: 3, diskBytes: 100 };
    const spool = new Spool(directory, () => limits, { bytes: () => Buffer.from('one'), fraction: () => 0 });
    await spool.start();
    const body = spool.enter('one', 50);
    context.after(() => body.close());
    allowWrites(process.pid, false);
    try {
      await assert.rejects(kept(body, Buffer.alloc(40)), { kind: 'overloaded' });
    } finally {
      allowWrites(process.pid, true);
    }
  });
