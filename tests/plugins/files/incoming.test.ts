/** Fetching what vendors made: cut, late, too large, of another kind, from the inside, or well. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { Semaphore } from '../../../plugins/files/semaphore.ts';
import { mp4, never, openRooms, owner, png, withVendor } from './setup.ts';

const open = { fetch: { allow_private: true } };

async function withKeeper(
  settings: Parameters<typeof openRooms>[0],
  work: (rooms: Awaited<ReturnType<typeof openRooms>>) => Promise<void>,
): Promise<void> {
  const rooms = await openRooms(settings);
  try {
    await work(rooms);
    assert.deepEqual(await readdir(join(rooms.directory, 'incoming')), [], 'nothing is left of what came in');
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

test('a result is fetched once and kept under the type of its content, whatever type its server claims', () =>
  withVendor(
    (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(mp4),
    (origin, seen) =>
      withKeeper(open, async ({ keeper }) => {
        const content = { url: `${origin}/film?token=t` };
        const file = await keeper.keep(content, 'video', owner(), never);
        assert.deepEqual([file.mediaType, file.bytes], ['video/mp4', mp4.length]);
        assert.ok(mp4.equals((await keeper.read('account-1', file.id))!));
        assert.deepEqual(await keeper.keep(content, 'video', owner(), never), file);
        assert.deepEqual(seen, ['/film?token=t']);
      }),
  ));

test('a result that is cut, refused or not there yet is fetched again', () =>
  withVendor(
    (_request, response, number) => {
      if (number === 1)
        response
          .writeHead(200, { 'content-length': mp4.length })
          .write(mp4.subarray(0, 90_000), () => response.destroy());
      else if (number === 2) response.writeHead(404).end();
      else if (number === 3) response.writeHead(503).end();
      else response.end(mp4);
    },
    (origin, seen) =>
      withKeeper(open, async ({ keeper }) => {
        const file = await keeper.keep({ url: `${origin}/film` }, 'video', owner(), never);
        assert.deepEqual([file.bytes, seen.length], [mp4.length, 4]);
      }),
  ));

test('a result that is always cut, with or without a declared length, fails after the tries, and may be tried later', () =>
  withVendor(
    (request, response) => {
      response.writeHead(200, request.url === '/sized' ? { 'content-length': mp4.length } : {});
      response.write(mp4.subarray(0, 90_000), () => response.destroy());
    },
    (origin, seen) =>
      withKeeper({ fetch: { allow_private: true, attempts: 2 } }, async ({ keeper }) => {
        for (const path of ['/sized', '/unsized']) {
          const error = await refusal(keeper.keep({ url: origin + path }, 'video', owner(), never));
          assert.deepEqual(
            [error.kind, error.code, error.shouldRetry],
            ['upstream_failed', 'result_not_fetched', undefined],
          );
          assert.ok(!error.message.includes('127.0.0.1'));
        }
        assert.deepEqual(seen, ['/sized', '/sized', '/unsized', '/unsized']);
      }),
  ));

test('a result that is too large, of another kind, compressed or gone for good is fetched once, and not again', () =>
  withVendor(
    (request, response) => {
      if (request.url === '/large')
        response.writeHead(200, { 'content-length': 3 * 2 ** 20 }).end(Buffer.alloc(3 * 2 ** 20, png));
      else if (request.url === '/larger') response.end(Buffer.concat([png, Buffer.alloc(3 * 2 ** 20)]));
      else if (request.url === '/page') response.writeHead(200, { 'content-type': 'image/png' }).end('<html>no</html>');
      else if (request.url === '/film') response.end(mp4);
      else if (request.url === '/empty') response.end();
      else if (request.url === '/packed') response.writeHead(200, { 'content-encoding': 'gzip' }).end(png);
      else response.writeHead(410).end();
    },
    (origin, seen) =>
      withKeeper({ ...open, file_limit: '1MB' }, async ({ keeper }) => {
        const paths = ['/large', '/larger', '/page', '/film', '/empty', '/packed', '/gone'];
        for (const path of paths) {
          const error = await refusal(keeper.keep({ url: origin + path }, 'image', owner(), never));
          assert.deepEqual([error.code, error.shouldRetry], ['result_unusable', false], path);
        }
        assert.deepEqual(seen, paths);
      }),
  ));

test('nothing is fetched from private addresses, except from the exact origin of the vendor', () =>
  withVendor(
    (request, response) => {
      if (request.url === '/elsewhere') response.writeHead(302, { location: 'http://127.0.0.1:9/x' }).end();
      else if (request.url === '/there') response.writeHead(302, { location: '/a.png' }).end();
      else response.end(png);
    },
    (origin, seen) =>
      withKeeper({}, async ({ keeper }) => {
        const vendor = { baseUrl: `${origin}/v1` };
        const { port } = new URL(origin);
        const refused = [
          { url: `${origin}/a.png` },
          { url: `${origin}/a.png`, vendor: { baseUrl: 'https://vendor.example/v1' } },
          { url: `${origin}/a.png`, vendor: { baseUrl: 'no address' } },
          { url: `http://localhost:${port}/a.png`, vendor },
          { url: 'http://169.254.169.254/latest', vendor },
          { url: 'file:///etc/passwd', vendor },
        ];
        for (const content of refused) {
          const error = await refusal(keeper.keep(content, 'image', owner(), never));
          assert.deepEqual([error.code, error.shouldRetry], ['result_unusable', false], content.url);
        }
        assert.equal(seen.length, 0);
        assert.equal(
          (await refusal(keeper.keep({ url: `${origin}/elsewhere`, vendor }, 'image', owner(), never))).code,
          'result_unusable',
        );
        const file = await keeper.keep({ url: `${origin}/there`, vendor }, 'image', owner(), never);
        assert.equal(file.bytes, png.length);
        assert.deepEqual(seen, ['/elsewhere', '/there', '/a.png']);
      }),
  ));

test('a silent server is left after the time for all tries, and aborted work ends with its reason', () =>
  withVendor(
    () => {},
    (origin) =>
      withKeeper({ fetch: { allow_private: true, timeout: '1s' } }, async ({ keeper }) => {
        const started = performance.now();
        const error = await refusal(keeper.keep({ url: `${origin}/a` }, 'image', owner(), never));
        assert.equal(error.code, 'result_not_fetched');
        assert.ok(performance.now() - started < 10_000);
        const controller = new AbortController();
        const reason = new GatewayError('overloaded', 'stopping');
        const fetching = keeper.keep({ url: `${origin}/b` }, 'image', owner(), controller.signal);
        setTimeout(() => controller.abort(reason), 30);
        assert.equal(await refusal(fetching), reason);
      }),
  ));

test('no more than the allowed number is fetched at once, and waiting fetches can be aborted', async () => {
  const turns = new Semaphore(2);
  const [one, two] = await Promise.all([turns.acquire(never), turns.acquire(never)]);
  const controller = new AbortController();
  const left = assert.rejects(turns.acquire(controller.signal), /gone/);
  let entered = false;
  const third = turns.acquire(never).then((turn) => {
    entered = true;
    return turn;
  });
  controller.abort(new Error('gone'));
  await left;
  assert.equal(entered, false);
  one();
  (await third)();
  two();
  const again = await Promise.all([turns.acquire(never), turns.acquire(never)]);
  for (const turn of again) turn();
});
