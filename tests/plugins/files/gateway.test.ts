/** Files over HTTP: a whole gateway with keys, a file kept in it, and clients that have its address or not. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, open, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { contentsIn } from '../../../plugins/billing/archive/contents.ts';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import {
  type Files,
  files,
  type KeptFile,
  type SealedFiles,
  sealedFiles,
} from '../../../plugins/common/domain/stored-files.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { startBucket, type TestBucket } from '../../helpers/s3.ts';
import { startTcpProxy } from '../../helpers/tcp-proxy.ts';
import { until } from '../../helpers/until.ts';
import { mp4, never, owner, png } from './setup.ts';

const yaml = (section = '{}') =>
  `gateway: test\nlisten: \${PORT}\nplugins: [storage, request-log, auth, files]\nfiles: ${section}\n`;

let directory: string;
let gateway: TestGateway;
let keeper: Files;
let video: KeptFile;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gateway-'));
  await boot();
  video = await keeper.keep(mp4, 'video', owner(), never);
});
after(async () => {
  await gateway.stop();
  await rm(directory, { recursive: true, force: true });
});

const keptFolder = () => join(directory, 'files', gateway.gateway.find(database)!.schema, 'kept');

async function boot(): Promise<void> {
  gateway = await startGateway(yaml(), { directory });
  keeper = gateway.gateway.find(files)!;
}

const get = (address: string, init: RequestInit = {}) => fetch(address, { redirect: 'manual', ...init });

test('an address gives the bytes without a key, with type and length', async () => {
  const answer = await get(keeper.address(video.id));
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), 'video/mp4');
  assert.equal(answer.headers.get('content-length'), String(mp4.length));
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  assert.match(answer.headers.get('cache-control')!, /^private, max-age=86[34]\d\d, immutable$/);
  assert.ok(mp4.equals(Buffer.from(await answer.arrayBuffer())));
});

test('HEAD gives the same headers without the bytes', async () => {
  const address = keeper.address(video.id);
  const [whole, head] = [await get(address), await get(address, { method: 'HEAD' })];
  await whole.arrayBuffer();
  assert.deepEqual([head.status, (await head.arrayBuffer()).byteLength], [200, 0]);
  for (const name of ['content-type', 'content-length', 'etag', 'accept-ranges', 'content-disposition'])
    assert.equal(head.headers.get(name), whole.headers.get(name), name);
  // It counts the seconds that the address is valid, and one may pass between the two.
  const keptFor = ({ headers }: Response) => Number(/max-age=(\d+)/.exec(headers.get('cache-control')!)![1]);
  assert.ok(Math.abs(keptFor(head) - keptFor(whole)) <= 2);
  const part = await get(address, { method: 'HEAD', headers: { range: 'bytes=0-9' } });
  assert.deepEqual([part.status, part.headers.get('content-length')], [206, '10']);
});

test('ranges of a video are served, one after the other on one connection', async () => {
  const address = keeper.address(video.id);
  const parts: Buffer[] = [];
  for (let first = 0; first < mp4.length; first += 70_000) {
    const answer = await get(address, { headers: { range: `bytes=${first}-${first + 69_999}` } });
    assert.equal(answer.status, 206);
    parts.push(Buffer.from(await answer.arrayBuffer()));
    assert.equal(answer.headers.get('content-length'), String(parts.at(-1)!.length));
  }
  assert.ok(mp4.equals(Buffer.concat(parts)));
  const beyond = await get(address, { headers: { range: `bytes=${mp4.length}-` } });
  assert.deepEqual([beyond.status, beyond.headers.get('content-range')], [416, `bytes */${mp4.length}`]);
  const known = await get(address, { headers: { 'if-none-match': `"${video.id}"` } });
  assert.deepEqual([known.status, known.headers.get('content-length'), await known.text()], [304, null, '']);
});

test('unknown, foreign, removed, expired and changed addresses get the same 404', async () => {
  const address = new URL(keeper.address(video.id));
  const changed = (change: (url: URL) => void) => {
    const url = new URL(address);
    change(url);
    return url.href;
  };
  const gone = await keeper.keep(png, 'image', owner('gone'), never);
  const goneAddress = keeper.address(gone.id);
  assert.equal((await get(goneAddress)).status, 200);
  await keeper.removeFilesOfTask('account-1', 'gone');
  const never128 = `file_${'0'.repeat(32)}`;
  const addresses = [
    goneAddress,
    keeper.address(never128),
    changed((url) => url.searchParams.delete('signature')),
    changed((url) => url.searchParams.delete('expires')),
    changed((url) => url.searchParams.set('expires', String(Number(url.searchParams.get('expires')) + 1))),
    changed((url) => url.searchParams.set('expires', '1000000000')),
    changed((url) => url.searchParams.set('signature', 'A'.repeat(43))),
    changed((url) => {
      url.search = url.search.replace('expires=', 'expires=9999999999&expires=');
    }),
    changed((url) => {
      url.pathname = url.pathname.replace(video.id, gone.id);
    }),
    changed((url) => {
      url.pathname = url.pathname.replace(video.id, '..%2f..%2fetc%2fpasswd');
    }),
  ];
  const reported = new Set<string>();
  for (const each of addresses) {
    const answer = await get(each);
    const names = [...answer.headers.keys()].filter((name) => name !== 'date').sort();
    reported.add(JSON.stringify([answer.status, names, answer.headers.get('cache-control'), await answer.text()]));
  }
  assert.deepEqual(reported.size, 1);
  assert.match([...reported][0]!, /^\[404,.*no-store.*file_not_found/);
});

test('neither a signature nor an id is written to the log', () => {
  const text = gateway.lines.join('');
  assert.ok(text.includes('"operation":"files"'));
  assert.ok(!text.includes('signature=') && !text.includes(video.id));
});

test('an operator lists space by account, and removes the files of an account or a task', async () => {
  const run = async (name: string, values = {}) =>
    (await gateway.gateway.commands.find((command) => command.name === name)!.run(values)).json;
  const { id: account } = await gateway.gateway.find(accounts)!.create('somebody', 'default');
  const [one, two] = [
    await keeper.keep(png, 'image', owner('one', 0, account), never),
    await keeper.keep(png, 'image', owner('two', 0, account), never),
  ];
  assert.deepEqual(await run('files usage'), [
    { accountId: 'account-1', files: 1, bytes: mp4.length },
    { accountId: account, files: 2, bytes: 2 * png.length },
  ]);
  assert.deepEqual(await run('files delete', { account: 'somebody', task: 'one' }), { accountId: account, files: 1 });
  assert.deepEqual(
    [(await get(keeper.address(one.id))).status, (await get(keeper.address(two.id))).status],
    [404, 200],
  );
  assert.deepEqual(await run('files delete', { account }), { accountId: account, files: 1 });
  await assert.rejects(run('files delete', { account: 'missing' }), /no account "missing"/);
});

test('a file whose bytes have vanished gets the same 404, and is reported to the operator', async () => {
  const { id } = await keeper.keep(png, 'image', owner('vanished'), never);
  const { schema } = gateway.gateway.find(database)!;
  await rm(join(directory, 'files', schema, 'kept', id.slice(-2), id));
  const answer = await get(keeper.address(id));
  const reported = (await answer.json()) as { error: { code: string } };
  assert.deepEqual([answer.status, reported.error.code], [404, 'file_not_found']);
  assert.ok(gateway.lines.some((line) => line.includes('missing in the store')));
  await keeper.removeFilesOfTask('account-1', 'vanished');
});

test('addresses and files survive a restart', async () => {
  const { pathname, search } = new URL(keeper.address(video.id));
  await gateway.stop();
  await boot();
  const answer = await get(gateway.origin + pathname + search);
  assert.equal(answer.status, 200);
  assert.ok(mp4.equals(Buffer.from(await answer.arrayBuffer())));
});

test("an address has its reader's origin if that is this machine, and never one that a header claims", () => {
  const listening = `http://localhost:${new URL(gateway.origin).port}`;
  const originOf = (host?: string) => new URL(keeper.address(video.id, host)).origin;
  assert.equal(originOf(), listening);
  assert.equal(originOf('localhost:1234'), 'http://localhost:1234');
  assert.equal(originOf('evil.example'), listening);
});

// ------------------------------------------------------------------------------------------------------- other settings

async function withGateway(
  section: string,
  work: (gateway: TestGateway, keeper: Files) => Promise<void>,
): Promise<void> {
  await using other = await startGateway(yaml(section));
  await work(other, other.gateway.find(files)!);
}

test('a configured origin is in every address, and an address expires at its time', () =>
  withGateway('{ origin: "https://gateway.example", links: 1s }', async ({ origin }, kept) => {
    const { id } = await kept.keep(png, 'image', owner(), never);
    const made = () => new URL(kept.address(id, 'localhost:1'));
    assert.equal(made().origin, 'https://gateway.example');
    // One may end on the way here while the machine is busy.
    const own = await until('an address is served', async () => {
      const { pathname, search } = made();
      return (await get(origin + pathname + search)).status === 200 && origin + pathname + search;
    });
    await until('it has expired', async () => (await get(own)).status === 404);
  }));

test('no more files than allowed are sent at once; a place is freed when one was sent, or its client has disconnected', () =>
  withGateway('{ answers: 1 }', async (_gateway, kept) => {
    const film = Buffer.concat([mp4, Buffer.alloc(30 * 2 ** 20)]);
    const address = kept.address((await kept.keep(film, 'video', owner(), never)).id);
    const first = await get(address);
    assert.equal((await get(address)).status, 503);
    assert.equal((await first.arrayBuffer()).byteLength, film.length);
    for (let round = 0; round < 3; round++) {
      const answer = await until('the place is free', async () => {
        const one = await get(address);
        return one.status === 200 && one;
      });
      await answer.body!.cancel();
    }
  }));

/** What the archive of old calls needs of a store. */
async function checkSealed(sealed: SealedFiles): Promise<void> {
  const contents = contentsIn(() => sealed);
  const [object, content] = [`archive/files/account/2026-05-${'0'.repeat(64)}.jsonl.gz`, 'head\n{"id":"one"}\n'];
  const digest = hash('sha256', content);
  const file = { object, digest, bytes: 1 };
  assert.deepEqual(await contents.read(file), { fault: 'is missing' });
  const bytes = await contents.put(object, 'another\n');
  assert.deepEqual(await contents.read({ ...file, bytes }), { fault: 'was altered' });
  const whole = { ...file, bytes: await contents.put(object, content) };
  assert.deepEqual(await contents.read(whole), { content });
  assert.deepEqual(await contents.read({ ...whole, bytes: whole.bytes - 1 }), { fault: 'was altered' });
  await sealed.put(object, Buffer.concat([(await sealed.read(object, 1_000))!, Buffer.from('x')]));
  assert.deepEqual(await contents.read(whole), { fault: 'was altered' });
}

test('sealed files are on the disk under their names, and a changed one is not read', async () => {
  await checkSealed(gateway.gateway.find(sealedFiles)!);
  assert.ok(existsSync(join(keptFolder(), 'archive', 'files', 'account')));
});

test('a sealed file on the disk is replaced whole, never written over', async () => {
  const sealed = gateway.gateway.find(sealedFiles)!;
  const folder = join(keptFolder(), 'archive', 'files', 'whole');
  await sealed.put('archive/files/whole/one.gz', Buffer.from('first'));
  const earlier = await open(join(folder, 'one.gz'));
  try {
    await sealed.put('archive/files/whole/one.gz', Buffer.from('second'));
    assert.equal(String(await earlier.readFile()), 'first');
  } finally {
    await earlier.close();
  }
  assert.equal(String(await sealed.read('archive/files/whole/one.gz', 100)), 'second');
  assert.deepEqual(await readdir(folder), ['one.gz']);
});

test('from a bucket the gateway gives bytes and ranges itself, or sends clients there', async () => {
  const bucket: TestBucket = await startBucket();
  const s3 = (redirect: boolean) => `{ s3: ${JSON.stringify({ ...bucket.settings, redirect })} }`;
  try {
    await withGateway(s3(false), async ({ gateway: within }, kept) => {
      await checkSealed(within.find(sealedFiles)!);
      const { id } = await kept.keep(mp4, 'video', owner(), never);
      const whole = await get(kept.address(id));
      assert.ok(mp4.equals(Buffer.from(await whole.arrayBuffer())));
      const part = await get(kept.address(id), { headers: { range: 'bytes=-100' } });
      assert.deepEqual([part.status, (await part.arrayBuffer()).byteLength], [206, 100]);
    });
    await withGateway(s3(true), async (_gateway, kept) => {
      const { id } = await kept.keep(mp4, 'video', owner(), never);
      const sent = await get(kept.address(id));
      assert.deepEqual([sent.status, sent.headers.get('cache-control')], [307, 'no-store']);
      const location = sent.headers.get('location')!;
      assert.ok(location.startsWith(bucket.settings.endpoint));
      const there = await get(location);
      assert.equal(there.headers.get('content-type'), 'video/mp4');
      assert.ok(mp4.equals(Buffer.from(await there.arrayBuffer())));
      assert.equal((await get(kept.address(id), { method: 'HEAD' })).status, 200);
    });
  } finally {
    await bucket.close();
  }
});

test('a bucket that is away is shown and logged by one line at each end, and requests that need it get 503', async () => {
  const bucket = await startBucket();
  const { port } = new URL(bucket.settings.endpoint);
  const way = await startTcpProxy(Number(port));
  const settings = { ...bucket.settings, endpoint: `http://127.0.0.1:${way.port}` };
  try {
    await withGateway(`{ s3: ${JSON.stringify(settings)} }`, async (there, kept) => {
      const stores = async () => ((await (await fetch(`${there.origin}/readyz`)).json()) as { stores: object }).stores;
      const { id } = await kept.keep(mp4, 'video', owner(), never);
      assert.deepEqual(await stores(), { database: 'ok', bucket: 'ok' });
      way.lead(1);
      way.cut();
      for (let times = 0; times < 2; times++) {
        const answer = await get(kept.address(id));
        assert.equal(answer.status, 503);
        assert.match(await answer.text(), /try again soon/);
      }
      assert.deepEqual(await stores(), { database: 'ok', bucket: 'away' });
      way.lead(Number(port));
      const again = await get(kept.address(id));
      assert.equal(again.status, 200);
      await again.arrayBuffer();
      assert.deepEqual(await stores(), { database: 'ok', bucket: 'ok' });
      const reported = there.lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
      assert.deepEqual(
        reported.filter((message) => message.includes('bucket')),
        ['the bucket of files does not answer', 'the bucket of files answers again'],
      );
      assert.deepEqual(
        reported.filter((message) => message.includes('failed')),
        [],
      );
    });
  } finally {
    await way.close();
    await bucket.close();
  }
});
