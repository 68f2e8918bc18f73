/** How often and how long is tried again, changed while the gateway serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { upstreamAdmin } from '../../../plugins/common/domain/admin/upstreams.ts';
import { attempts, type Call, call } from '../../../plugins/common/domain/calls.ts';
import { model } from '../../../plugins/common/domain/models.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import plugin from '../../../plugins/route/index.ts';
import { fakeExchange, fakeHost, prepare, setUp } from '../../helpers/fakes.ts';
import { modelWith } from './helpers.ts';

const speaks = { chat: 'https://vendor.example/v1' };
const requestedCall: Partial<Call> = { protocol: 'chat', model: 'm' };

test('a request keeps the rules of its arrival', async () => {
  const host = fakeHost();
  await setUp(providersPlugin, host, { a: { keys: 'k', speaks }, b: { keys: 'k', speaks } });
  const part = await setUp(plugin, host, { attempts: 2 });
  const old = part.handle!;
  const commit = await prepare(plugin, part, { attempts: 1 });
  const tries = async (handle: typeof old) => {
    const exchange = fakeExchange({
      facts: [
        [call, requestedCall],
        [model, modelWith('a', 'b')],
      ],
    });
    await assert.rejects(
      handle(exchange, async () => {
        throw new UpstreamError('connect', 'nothing listens there');
      }),
    );
    return exchange.get(attempts).length;
  };
  assert.deepEqual([await tries(part.handle!), await tries(old)], [2, 2]);
  commit();
  assert.deepEqual([await tries(part.handle!), await tries(old)], [1, 2]);
  await assert.rejects(prepare(plugin, part, { attempts: 9 }));
  assert.equal(await tries(part.handle!), 1);
});

test('the known health of targets stays at a reload, and the new settings apply from then on', async () => {
  const host = fakeHost();
  await setUp(providersPlugin, host, { a: { keys: 'k', speaks } });
  const part = await setUp(plugin, host, {});
  const send = async () => {
    const exchange = fakeExchange({
      facts: [
        [call, requestedCall],
        [model, modelWith('a')],
      ],
    });
    await assert.rejects(async () =>
      part.handle!(exchange, async () => {
        throw new UpstreamError('connect', 'nothing listens there');
      }),
    );
    await exchange.end();
    return exchange.get(attempts).length;
  };
  const [circuit, failed] = [() => target().circuit, () => target().failed];
  const target = () => host.get(upstreamAdmin).list()[0]!.targets![0]!;
  for (let round = 0; round < 2; round++) await send();
  (await prepare(plugin, part, { breaker: { failures: 3, share: 0.6, all_open: 'refuse' } }))();
  assert.deepEqual([circuit(), failed()], ['closed', 2]);
  await send();
  assert.deepEqual([circuit(), await send()], ['open', 0]);
  await assert.rejects(prepare(plugin, part, { breaker: { open: '2m' } }), /max_open/);
  for (const share of [0, 1.1]) await assert.rejects(prepare(plugin, part, { breaker: { share } }), /share/);
});
