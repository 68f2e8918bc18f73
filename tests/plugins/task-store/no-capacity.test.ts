/** Orders while there is no room for what they would bring: refused before anything is held, stored or sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { database } from '../../../plugins/common/domain/database.ts';
import { startVendor } from '../../../plugins/sandbox/vendor.ts';
import { startGateway } from '../../helpers/gateway.ts';
import { clientOf } from './clients.ts';

const yamlOf = (vendor: string, files: string) => `
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, providers, models, idempotency, billing, route, files, task-store]
auth: { public: [] }
plans: { default: free, offers: { free: { price: 0 } } }
providers:
  maker: { keys: vendor-key-1, speaks: { openai-images: "${vendor}/v1", ark-videos: "${vendor}/api/v3" } }
models:
  paint: { owned_by: tests, kind: image, targets: [maker/p1], price: { image: 0.01 } }
  film: { owned_by: tests, kind: video, targets: [maker/f1], price: { second: 0.05 } }
files: { ${files} }
`;

const cases = [
  ['a disk that is full', 'disk_reserve: 1000000GB', 503, 'storage_full'],
  ['all space used up', 'total_limit: 0', 503, 'storage_full'],
  ['an account that has used its space up', 'account_limit: 0', 403, 'file_space_used_up'],
] as const;

for (const [what, files, status, code] of cases) {
  test(`${what}: every order is refused with ${status}, and nothing was held, stored or sent`, async (context) => {
    const vendor = await startVendor();
    context.after(() => vendor.close());
    const gateway = await startGateway(yamlOf(vendor.origin, files));
    context.after(() => gateway.stop());
    const client = await clientOf(gateway, 'alice');
    const before = await client.balance();
    const image = { model: 'paint', prompt: 'a cat' };
    const film = { model: 'film', content: [{ type: 'text', text: 'waves' }], duration: 5 };
    const orders = [
      ['/v1/images/generations', image, {}],
      ['/v1/images/generations', { ...image, response_format: 'url' }, {}],
      ['/v1/images/generations', image, { 'idempotency-key': 'again' }],
      ['/v1/images/generations', image, { 'idempotency-key': 'again' }],
      ['/v1/contents/generations/tasks', film, {}],
      ['/v1/videos', { model: 'film', prompt: 'waves' }, {}],
    ] as const;
    for (const [path, body, headers] of orders) {
      const reply = await client.send('POST', path, body, headers);
      assert.deepEqual([reply.status, reply.json.error.code], [status, code], path);
      assert.equal(reply.headers.get('idempotent-replayed'), null);
    }
    await client.hasPaid(before, 0n);
    assert.deepEqual((await client.send('GET', '/v1/tasks')).json.data, []);
    const { orm, schema } = gateway.gateway.find(database)!;
    for (const table of ['deposits', 'tasks']) {
      const rows = await orm.execute(sql`select 1 from ${sql.identifier(schema)}.${sql.identifier(table)}`);
      assert.equal([...(rows as unknown as Iterable<unknown>)].length, 0, table);
    }
    assert.equal(vendor.bill().requests, 0);
  });
}
