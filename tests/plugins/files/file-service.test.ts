/** Keeping, finding, removing and sweeping files, on a disk and in a bucket, within bounds and by several processes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { ByteStore } from '../../../plugins/files/bytes.ts';
import { configSchema } from '../../../plugins/files/config.ts';
import { openStore } from '../../../plugins/files/index.ts';
import { servingOf } from '../../../plugins/files/serving.ts';
import { openDatabase } from '../../helpers/database.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { startBucket, type TestBucket } from '../../helpers/s3.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { mp4, never, openRooms, owner, png, type Rooms } from './setup.ts';

let bucket: TestBucket;
before(async () => {
  bucket = await startBucket();
});
after(() => bucket.close());

const settings = {
  disk: () => ({}),
  bucket: () => ({ s3: { ...bucket.settings, prefix: 'gateway/' } }),
};

async function withRooms(section: object, work: (rooms: Rooms) => Promise<void>, changes?: Partial<ByteStore>) {
  const rooms = await openRooms(section, changes);
  try {
    await work(rooms);
  } finally {
    await rooms.close();
  }
}

async function refusal(work: Promise<unknown>): Promise<GatewayError> {
  const error = await work.then(
    () => assert.fail('nothing was refused'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof GatewayError, String(error));
  return error;
}

const lies = async ({ store }: Rooms, id: string): Promise<boolean> => {
  const opened = await store.open(id, { first: 0, last: 0 });
  opened?.close();
  return opened !== undefined;
};

for (const kind of ['disk', 'bucket'] as const) {
  test(`${kind}: a kept file is read by its account alone`, () =>
    withRooms(settings[kind](), async ({ keeper, host }) => {
      const image = await keeper.keep(png, 'image', owner(), never);
      const video = await keeper.keep(mp4, 'video', owner('task-1', 1), never);
      assert.deepEqual([image.mediaType, image.bytes], ['image/png', png.length]);
      assert.equal(image.expiresAt, host.clock.now() + 7 * 86_400_000);
      assert.deepEqual(await keeper.find('account-1', image.id), image);
      assert.ok(mp4.equals((await keeper.read('account-1', video.id))!));
      for (const [account, id] of [
        ['account-2', image.id],
        ['account-1', `file_${'0'.repeat(32)}`],
        ['account-1', "x' or true --"],
      ] as const) {
        assert.equal(await keeper.find(account, id), undefined);
        assert.equal(await keeper.read(account, id), undefined);
      }
    }));

  test(`${kind}: a span of the bytes is read`, () =>
    withRooms(settings[kind](), async ({ keeper, store }) => {
      const { id } = await keeper.keep(mp4, 'video', owner(), never);
      const opened = await store.open(id, { first: 4, last: 11 });
      const chunks: Uint8Array[] = [];
      for await (const chunk of opened!.body) chunks.push(chunk);
      opened!.close();
      assert.equal(Buffer.concat(chunks).toString('latin1'), 'ftypisom');
    }));

  test(`${kind}: expired files are not found at once, and are deleted with their rows by a process that starts later`, () =>
    withRooms(settings[kind](), async (rooms) => {
      const old = await rooms.keeper.keep(png, 'image', owner('old'), never);
      rooms.host.advance(7 * 86_400_000 - 1);
      const young = await rooms.keeper.keep(png, 'image', owner('young'), never);
      assert.ok(await rooms.keeper.find('account-1', old.id));
      rooms.host.advance(1);
      assert.equal(await rooms.keeper.find('account-1', old.id), undefined);
      assert.equal(await lies(rooms, old.id), true);
      const later = await rooms.beside();
      assert.equal(await later.keeper.sweep(), 1);
      assert.equal(await lies(rooms, old.id), false);
      assert.ok(await later.keeper.read('account-1', young.id));
      assert.deepEqual(await usage(rooms), [{ account_id: 'account-1', bytes: String(png.length) }]);
    }));

  test(`${kind}: files removed by task or account are not found at once, and their bytes are deleted by the next sweep`, () =>
    withRooms(settings[kind](), async (rooms) => {
      const { keeper } = rooms;
      const one = await keeper.keep(png, 'image', owner('t1'), never);
      const two = await keeper.keep(png, 'image', owner('t2'), never);
      const foreign = await keeper.keep(png, 'image', owner('t1', 0, 'account-2'), never);
      await keeper.removeFilesOfTask('account-1', 't1');
      assert.equal(await keeper.find('account-1', one.id), undefined);
      assert.ok(await keeper.find('account-1', two.id));
      await keeper.removeOfAccount('account-1');
      assert.equal(await keeper.find('account-1', two.id), undefined);
      assert.equal(await keeper.sweep(), 2);
      assert.deepEqual([await lies(rooms, one.id), await lies(rooms, two.id)], [false, false]);
      assert.ok(await keeper.read('account-2', foreign.id));
    }));
}

async function usage({ schema }: Rooms): Promise<unknown> {
  await using database = await openDatabase({ schema });
  return [
    ...((await database.orm.execute(
      sql`select account_id, bytes::text as bytes from ${sql.identifier(schema)}.file_usage order by 1`,
    )) as unknown as Iterable<unknown>),
  ];
}

test("a task's file is kept once, with any number of concurrent keepers", () =>
  withRooms({}, async (rooms) => {
    const other = await rooms.beside();
    const first = await rooms.keeper.keep(png, 'image', owner(), never);
    assert.deepEqual(await other.keeper.keep(png, 'image', owner(), never), first);
    const reported = new Set<string>();
    const tasks = Array.from({ length: 20 }, (_, index) => `task-${index + 2}`);
    for (const task of tasks) {
      const both = await Promise.allSettled(
        [rooms, other].map(({ keeper }) => keeper.keep(png, 'image', owner(task), never)),
      );
      for (const result of both) {
        if (result.status === 'fulfilled') reported.add(result.value.id);
        else assert.equal(result.reason.kind, 'conflict');
      }
    }
    assert.equal(reported.size, tasks.length);
    rooms.host.advance(1);
    await rooms.keeper.sweep();
    for (const id of reported) assert.ok(await rooms.keeper.read('account-1', id));
    const bytes = String((1 + tasks.length) * png.length);
    assert.deepEqual(await usage(rooms), [{ account_id: 'account-1', bytes }]);
  }));

test('several processes that sweep at once delete each file once', () =>
  withRooms({}, async (rooms) => {
    for (let number = 0; number < 120; number++) await rooms.keeper.keep(png, 'image', owner('t', number), never);
    const removed: string[] = [];
    const remove = async (id: string) => {
      removed.push(id);
      await rooms.store.remove(id);
    };
    const processes = await Promise.all([1, 2, 3].map(() => rooms.beside({ remove })));
    rooms.host.advance(8 * 86_400_000);
    const swept = await Promise.all(processes.map(({ keeper }) => keeper.sweep()));
    assert.equal(
      swept.reduce((sum, count) => sum + count, 0),
      120,
    );
    assert.deepEqual([removed.length, new Set(removed).size], [120, 120]);
    assert.deepEqual(await usage(rooms), [{ account_id: 'account-1', bytes: '0' }]);
  }));

test('a process that dies while it writes or deletes leaves nothing after a later sweep', () =>
  withRooms({}, async (rooms) => {
    const { keeper, rows, host } = rooms;
    const limits = { accountBytes: 10 ** 9, totalBytes: 10 ** 9, freeBytes: 0, freeAccountBytes: 0 };
    const id = `file_${'1'.repeat(32)}`;
    const begunAt = host.clock.now();
    await rows.begin({ id, owner: owner(), mediaType: 'image/png', bytes: png.length }, limits, host.clock.now());
    await rooms.store.put(id, png, { mediaType: 'image/png', bytes: png.length });
    assert.equal(await keeper.find('account-1', id), undefined);
    assert.equal(await keeper.sweep(), 0);
    host.advance(3_600_000);
    assert.deepEqual(await rows.claim(10, host.clock.now()), [id]);
    // Here the one that claimed it dies.
    assert.equal(await keeper.sweep(), 0);
    host.advance(300_000);
    assert.equal(await keeper.sweep(), 1);
    assert.equal(await lies(rooms, id), false);
    // A client that was still writing gets the error.
    assert.equal(await rows.complete(id, begunAt, host.clock.now() + 1000), false);
  }));

test('a file with an id of its own is written again at once when its writer was killed, and a late first writer leaves it alone', () =>
  withRooms({}, async (rooms) => {
    const { keeper, host } = rooms;
    const id = `file_${'2'.repeat(32)}`;
    const store = (from: Rooms, content: Buffer) =>
      from.keeper.store({ content, mediaType: 'image/png', bytes: content.length }, owner(), { id }, 60_000);
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const slow = await rooms.beside({
      async put(...given) {
        begun.resolve();
        await held.promise;
        await rooms.store.put(...given);
      },
    });
    const late = refusal(store(slow, png));
    await begun.promise;
    host.advance(10_000);
    const longer = Buffer.concat([png, Buffer.alloc(50, 3)]);
    const kept = await store(rooms, longer);
    assert.deepEqual([kept.id, kept.bytes], [id, longer.length]);
    assert.deepEqual(await usage(rooms), [{ account_id: 'account-1', bytes: String(longer.length) }]);
    held.resolve();
    assert.equal((await late).kind, 'conflict');
    assert.equal(await keeper.sweep(), 0);
    assert.deepEqual(await keeper.find('account-1', id), kept);
    assert.equal(await lies(rooms, id), true);
    host.advance(60_000);
    assert.equal(await keeper.sweep(), 1);
    assert.deepEqual(await usage(rooms), [{ account_id: 'account-1', bytes: '0' }]);
  }));

test('a file removed during its writing is not reported as kept', () =>
  withRooms({}, async (rooms) => {
    const put: ByteStore['put'] = async (id, content, details) => {
      await rooms.store.put(id, content, details);
      await rooms.keeper.removeFilesOfTask('account-1', 'task-1');
    };
    const other = await rooms.beside({ put });
    assert.equal((await refusal(other.keeper.keep(png, 'image', owner(), never))).kind, 'conflict');
    assert.equal(await rooms.keeper.sweep(), 1);
    assert.deepEqual(await keptFiles(rooms.directory), []);
  }));

test('a failed deletion is repeated later', () => {
  let broken = true;
  return withRooms({}, async (rooms) => {
    const remove = async (id: string) => {
      if (broken) throw new Error('no');
      await rooms.store.remove(id);
    };
    const other = await rooms.beside({ remove });
    const { id } = await other.keeper.keep(png, 'image', owner(), never);
    await other.keeper.removeFilesOfTask('account-1', 'task-1');
    assert.equal(await other.keeper.sweep(), 0);
    assert.ok(rooms.host.lines.some(({ level }) => level === 'warn'));
    broken = false;
    rooms.host.advance(300_000);
    assert.equal(await other.keeper.sweep(), 1);
    assert.equal(await lies(rooms, id), false);
  });
});

// ------------------------------------------------------------------------------------------------------------- bounds

test('an account that has used its space up is refused, before and after the generation, and others are not', () =>
  withRooms({ account_limit: 2 * png.length }, async ({ keeper, host }) => {
    await keeper.keep(png, 'image', owner('a'), never);
    await keeper.ensureRoom('account-1');
    await keeper.keep(png, 'image', owner('b'), never);
    for (const work of [() => keeper.ensureRoom('account-1'), () => keeper.keep(png, 'image', owner('c'), never)]) {
      const error = await refusal(work());
      assert.deepEqual([error.kind, error.code], ['forbidden', 'file_space_used_up']);
    }
    await keeper.ensureRoom('account-2');
    await keeper.keep(png, 'image', owner('c', 0, 'account-2'), never);
    await keeper.removeFilesOfTask('account-1', 'a');
    host.advance(1);
    await keeper.sweep();
    await keeper.keep(png, 'image', owner('c'), never);
  }));

test('when all space is used up, every account gets retry-after', () =>
  withRooms({ total_limit: png.length }, async ({ keeper }) => {
    await keeper.keep(png, 'image', owner('a'), never);
    const error = await refusal(keeper.keep(png, 'image', owner('a', 0, 'account-2'), never));
    assert.deepEqual([error.kind, error.code, error.retryAfterMs], ['overloaded', 'storage_full', 60_000]);
  }));

test('two concurrent files do not both get the last space', () =>
  withRooms({ account_limit: png.length }, async (rooms) => {
    const other = await rooms.beside();
    const both = await Promise.allSettled([
      rooms.keeper.keep(png, 'image', owner('a'), never),
      other.keeper.keep(png, 'image', owner('b'), never),
    ]);
    assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  }));

test('a full, or nearly full, disk is reported as such, and nothing is left of the file', async () => {
  const put = async () => {
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  };
  await withRooms(
    {},
    async ({ keeper, host, rows }) => {
      const error = await refusal(keeper.keep(png, 'image', owner(), never));
      assert.deepEqual([error.kind, error.code], ['overloaded', 'storage_full']);
      assert.equal(await rows.findOfTask(owner(), host.clock.now()), undefined);
      assert.equal(await keeper.sweep(), 1);
    },
    { put },
  );
  await withRooms({ disk_reserve: '900000GB' }, async ({ keeper }) => {
    for (const work of [() => keeper.ensureRoom('account-1'), () => keeper.keep(png, 'image', owner(), never)])
      assert.equal((await refusal(work())).code, 'storage_full');
  });
});

test('a file is sent to a bucket again after a broken connection, and not after a refusal', async (context) => {
  const directory = temporaryDirectory('files-');
  await writeFile(join(directory, 'incoming'), mp4);
  const received: (number | 'broken')[] = [];
  let status = 200;
  const server = createServer(async (request, response) => {
    if (received.length === 0) {
      received.push('broken');
      return void request.socket.destroy();
    }
    let length = 0;
    for await (const chunk of request) length += (chunk as Buffer).length;
    received.push(length);
    response.writeHead(status).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  context.after(() => server.close());
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = configSchema.parse({ s3: { ...bucket.settings, endpoint } });
  const store = await openStore(directory, config, fakeHost());
  context.after(() => store.close());
  const details = { mediaType: 'video/mp4', bytes: mp4.length };
  await store.put('file_one', { path: 'incoming' }, details);
  assert.deepEqual(received, ['broken', mp4.length]);
  status = 403;
  await assert.rejects(store.put('file_two', { path: 'incoming' }, details));
  assert.equal(received.length, 3);
});

test("a missing bucket is an error without the bucket's own text", () =>
  withRooms({ s3: { ...bucket.settings, bucket: 'no-such-bucket' } }, async ({ keeper }) => {
    const error = await refusal(keeper.keep(png, 'image', owner(), never));
    assert.deepEqual([error.kind, error.code], ['overloaded', 'storage_failed']);
    assert.ok(!error.message.includes('bucket'));
  }));

const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>');

test('an SVG is served as an attachment in a sandbox, with anything before its first element', () =>
  withRooms({}, async ({ keeper }) => {
    for (const before of ['', '\uFEFF', '<?xml version="1.0"?>\n<!-- made -->\n<!DOCTYPE svg PUBLIC "x">\n']) {
      const kept = await keeper.keep(Buffer.concat([Buffer.from(before), svg]), 'image', owner(), never);
      assert.equal(kept.mediaType, 'image/svg+xml');
      for (const range of [undefined, 'bytes=0-9']) {
        const request = { headers: range === undefined ? {} : { range } };
        const { headers } = servingOf(kept, request, kept.expiresAt, kept.expiresAt - 1_000);
        assert.match(headers['content-security-policy']!, /; sandbox$/);
        assert.equal(headers['content-disposition'], `attachment; filename="${kept.id}.svg"`);
        assert.equal(headers['x-content-type-options'], 'nosniff');
      }
    }
  }));

test('a file that is no image or video, or larger than allowed, is not kept', () =>
  withRooms({ file_limit: 1000 }, async ({ keeper, directory }) => {
    const page = Buffer.from('<html><body><svg xmlns="http://www.w3.org/2000/svg"/></body></html>');
    const pdf = Buffer.from('%PDF-1.7 and more');
    for (const [bytes, kind] of [
      [page, 'image'],
      [svg, 'video'],
      [pdf, 'image'],
      [png, 'video'],
      [mp4, 'video'],
      [Buffer.alloc(0), 'image'],
    ] as const) {
      const error = await refusal(keeper.keep(bytes, kind, owner(), never));
      assert.deepEqual([error.kind, error.code, error.shouldRetry], ['upstream_failed', 'result_unusable', false]);
    }
    assert.deepEqual(await keptFiles(directory), []);
  }));

test('old temporary files of fetching are removed', () =>
  withRooms({}, async ({ directory, keeper }) => {
    await writeFile(join(directory, 'incoming', 'left'), 'x');
    const { Incoming } = await import('../../../plugins/files/incoming.ts');
    const guard = { allowPrivate: false, maxBytes: 1 };
    const incoming = new Incoming(
      directory,
      { guard, parallel: 1, timeoutMs: 1, attempts: 1 },
      { bytes: Buffer.alloc, fraction: () => 0 },
    );
    await incoming.removeLeftovers(Date.now() + 3_600_000);
    assert.deepEqual(await readdir(join(directory, 'incoming')), ['left']);
    await incoming.removeLeftovers(Date.now() + 3 * 3_600_000);
    assert.deepEqual(await readdir(join(directory, 'incoming')), []);
    await incoming.close();
    await keeper.keep(png, 'image', owner(), never);
  }));

async function keptFiles(directory: string): Promise<string[]> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map(({ name }) => name);
}

test('signed addresses count for the account of the file: opened from many networks they get its share of the places alone', () =>
  withRooms({ answers: 4 }, async ({ keeper, host }) => {
    const ends: (() => void)[] = [];
    const open = async (fileId: string, remoteAddress: string) => {
      const exchange = {
        request: { method: 'GET', headers: {}, remoteAddress },
        defer: (end: () => void) => void ends.push(end),
      };
      return keeper.answerAddress(fileId, host.clock.now() + 60_000, exchange as unknown as Exchange);
    };
    const { id } = await keeper.keep(png, 'image', owner('a'), never);
    const other = await keeper.keep(png, 'image', owner('a', 0, 'account-2'), never);
    assert.equal((await open(id, '192.0.2.1')).status, 200);
    for (const network of ['198.51.100.1', '203.0.113.1', '2001:db8::1'])
      assert.equal((await refusal(open(id, network))).code, 'files');
    assert.equal((await open(other.id, '198.51.100.1')).status, 200);
    for (const end of ends) end();
    assert.equal((await open(id, '203.0.113.1')).status, 200);
    ends.at(-1)!();
  }));
