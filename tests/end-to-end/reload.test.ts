/** Reloads while calls stream through: no connection is dropped, no call fails, and each call is charged by the price it came in at. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Usage } from '../../plugins/common/domain/usage.ts';
import { dialectNames, dialects } from './dialects.ts';
import { type Customer, modelAt, type Reply, speaks, startTestbed, type Testbed } from './testbed.ts';

const reloads = 20;
const callsPerSecond = 200;
const mostAtOnce = 300;
const lastsMs = 5_000;

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed(sectionsOf(1));
});
after(() => testbed.stop());

/** Nearly everything that can change while a gateway serves, in the version `version`; a token costs so many times more. */
function sectionsOf(version: number) {
  const prices = { input: version, cache_read: version, output: 2 * version };
  return {
    offers: { [`offer-${version}`]: { price: version, limits: { rpm: 1_000_000 + version } } },
    models: {
      sandbox: { ...modelAt('sandbox'), price: prices },
      [`extra-${version}`]: modelAt('sandbox'),
    },
    providers: ({ sandbox }: { sandbox: string }) => ({
      sandbox: {
        keys: ['vendor-key-of-the-sandbox', ...(version % 2 === 0 ? ['vendor-key-of-the-sandbox'] : [])],
        speaks: speaks(sandbox),
        timeouts: { idle: `${60 + version}s` },
      },
    }),
    more: {
      'rate-limit': { reserve: { output_tokens: 4_096 + version } },
      'protocol-convert': { media: { per_request: version } },
      route: { cooldown: { max: `${version}m` } },
      billing: { hold: { output_tokens: 4_000 + version } },
      auth: { failures: { per_minute: 100 + version } },
    },
  };
}

/** Writes the file again, in the version `version`, and takes it up. */
async function reload(version: number): Promise<void> {
  const file = join(testbed.gateway.directory, 'gateway.yaml');
  const { offers, models, providers, more } = sectionsOf(version);
  const changed: Record<string, object> = {
    plans: { default: 'open', offers: { open: { price: 0 }, ...offers } },
    models: { ...models, replay: modelAt('replay') },
    providers: {
      ...providers({ sandbox: testbed.sandbox.origin }),
      replay: { keys: 'vendor-key-of-the-replay', speaks: speaks(testbed.replay.origin) },
    },
    ...more,
  };
  const lines = (await readFile(file, 'utf8')).split('\n');
  const text = lines.map((line) => {
    const name = /^([a-z-]+): \{/.exec(line)?.[1] ?? '';
    return name in changed ? `${name}: ${JSON.stringify(changed[name])}` : line;
  });
  await writeFile(file, text.join('\n'));
  const check = await testbed.gateway.gateway.reload();
  assert.deepEqual(check.problems, []);
  assert.deepEqual(
    check.changes.map(({ section, restart }) => `${section} ${restart}`).sort(),
    Object.keys(changed)
      .map((name) => `${name} false`)
      .sort(),
  );
}

/** What this usage costs in this version. */
const costIn = (version: number, { input = 0, cache_read = 0, output = 0, reasoning = 0 }: Usage): bigint =>
  BigInt(version * 1_000) * BigInt(input + cache_read + 2 * (output + reasoning));

interface Call {
  readonly reply: Reply;
  readonly dialect: (typeof dialectNames)[number];
  /** Versions that held when it was sent, and when it was answered. */
  readonly from: number;
  readonly until: number;
}

test('twenty reloads under two hundred calls a second drop no call and fail none, and each call has its own price', async () => {
  const customer = await testbed.customer({ nanoUsd: 10n ** 13n });
  let version = 1;
  let running = 0;
  const calls: Promise<Call>[] = [];
  const send = async (index: number): Promise<Call> => {
    const dialect = dialectNames[index % dialectNames.length]!;
    const from = version;
    const prompt = `Say it [[sandbox: tokens=8 chunks=4 chunk_delay=${index % 50}ms]]`;
    running++;
    const reply = await testbed.call(customer, dialect, { model: 'sandbox', prompt, stream: index % 3 !== 0 });
    running--;
    return { reply, dialect, from, until: version };
  };
  const beganAt = performance.now();
  const changing = (async () => {
    for (let next = 2; next <= reloads + 1; next++) {
      await pause(lastsMs / (reloads + 1));
      await reload(next);
      version = next;
    }
  })();
  const total = (callsPerSecond * lastsMs) / 1_000;
  while (calls.length < total) {
    // The one that was late is made up for: the rate holds whatever a reload takes, unless the machine is too slow for it.
    const due = Math.floor(((performance.now() - beganAt) / 1_000) * callsPerSecond);
    while (calls.length < Math.min(due, total) && running < mostAtOnce) calls.push(send(calls.length));
    await pause(2);
  }
  await changing;
  const ended = await Promise.all(calls);
  for (const { reply, dialect } of ended) {
    assert.deepEqual([reply.status, reply.broken], [200, false], reply.text);
    assert.doesNotMatch(reply.text, dialects[dialect].streamError);
  }
  await assertCharged(customer, ended);
  assert(!testbed.gateway.lines.some((line) => line.includes('"level":"error"')));
  await testbed.audit();
});

/** `until` is taken when the answer has ended, so it is the newest version that the call can have met. */
async function assertCharged(customer: Customer, calls: readonly Call[]): Promise<void> {
  const { charges } = await testbed.records(customer, calls.length);
  const rows = new Map(charges.map((row) => [row.id, row]));
  const met = new Set<number>();
  for (const { reply, from, until } of calls) {
    const { cost, classes } = rows.get(reply.id)!;
    const possible = Array.from({ length: until + 1 - from }, (_, index) => from + index);
    const charged = possible.find((version) => costIn(version, classes) === cost);
    assert(charged !== undefined, `${cost} for ${JSON.stringify(classes)} in the versions ${from} to ${until}`);
    met.add(charged);
  }
  assert(met.size > reloads / 2, `only ${met.size} versions were met`);
}

test('a new price applies to calls that begin after it, and not to a running stream', async () => {
  await reload(31);
  const customer = await testbed.customer();
  const prompt = 'Say it [[sandbox: tokens=6 chunks=6 chunk_delay=100ms]]';
  const running = testbed.call(customer, 'chat', { model: 'sandbox', prompt, stream: true });
  await pause(200);
  await reload(32);
  const later = await testbed.call(customer, 'chat', { model: 'sandbox', prompt: 'Say it' });
  const reply = await running;
  const { charges } = await testbed.records(customer, 2);
  const costs = (id: string) => {
    const { cost, classes } = charges.find((row) => row.id === id)!;
    return { cost, of: (version: number) => costIn(version, classes) };
  };
  const [old, fresh] = [costs(reply.id), costs(later.id)];
  assert.equal(old.cost, old.of(31));
  assert.equal(fresh.cost, fresh.of(32));
  await testbed.audit();
});

test('models are added and removed, and an unsellable catalogue is refused whole', async () => {
  const customer = await testbed.customer();
  const status = async (model: string) => (await testbed.call(customer, 'chat', { model, prompt: 'Hello' })).status;
  await reload(41);
  assert.deepEqual([await status('extra-41'), await status('extra-42')], [200, 404]);
  await reload(42);
  assert.deepEqual([await status('extra-41'), await status('extra-42')], [404, 200]);
  const file = join(testbed.gateway.directory, 'gateway.yaml');
  const good = await readFile(file, 'utf8');
  const loss = good
    .replace('"extra-42":{', '"extra-43":{"cost":{"input":99,"output":99},')
    .replace('"per_minute":142', '"per_minute":1');
  await writeFile(file, loss);
  const { problems } = await testbed.gateway.gateway.reload();
  assert.deepEqual(
    problems.map(({ message }) => message.replace(/:.*/, '')),
    ['models.extra-43.price'],
  );
  assert.match(problems[0]!.where, /gateway\.yaml:\d+$/);
  assert.deepEqual([await status('extra-42'), await status('extra-43')], [200, 404]);
  await writeFile(file, good);
});
