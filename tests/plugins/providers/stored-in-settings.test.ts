/** Stored secrets in the settings of other plugins, and in the way to a vendor. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boot } from '../../../core/gateway/boot.ts';
import { createLog } from '../../../core/gateway/log.ts';
import { vendorSecrets } from '../../../plugins/common/domain/admin/vendor-secrets.ts';
import { providersSchema } from '../../../plugins/providers/config.ts';
import { filledIn, namesIn } from '../../../plugins/providers/secrets/references.ts';
import { startGateway } from '../../helpers/gateway.ts';
import { certificates } from '../../helpers/network-stand-ins.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { until } from '../../helpers/until.ts';

const yaml = (upstream: string) =>
  `gateway: test\nlisten: 127.0.0.1:0\nplugins: [storage, providers, passthrough]\npassthrough: { upstream: "${upstream}" }\n`;
const upstreamOf = ({ file }: { file: { sections: Record<string, unknown> } }) =>
  (file.sections['passthrough'] as { upstream: string }).upstream;

test('a stored secret stands in the settings of another plugin, follows its replacement, and is not deleted while it does', async () => {
  const directory = temporaryDirectory('stored-');
  const named = yaml('http://127.0.0.1:9/${secret:path}');
  await assert.rejects(
    startGateway(named, { directory }),
    /passthrough\.upstream: the source "secret" has no secret "path"/,
  );
  {
    await using first = await startGateway(yaml('http://127.0.0.1:9/${secret:path:-none}'), { directory });
    assert.equal(upstreamOf(first.gateway), 'http://127.0.0.1:9/none');
    await first.gateway.find(vendorSecrets)!.set('path', 'one', 'Olga', 0);
    await until('the secret is taken up', () => upstreamOf(first.gateway).endsWith('/one'));
  }
  await using second = await startGateway(named, { directory });
  assert.equal(upstreamOf(second.gateway), 'http://127.0.0.1:9/one');
  const secrets = second.gateway.find(vendorSecrets)!;
  await secrets.set('path', 'two', 'Olga', 0);
  await until('the replaced secret is taken up', () => upstreamOf(second.gateway).endsWith('/two'));
  assert.deepEqual(
    secrets.list().map(({ usedBy }) => usedBy),
    [['gateway.yaml']],
  );
  await assert.rejects(secrets.remove('path'), /The settings of gateway\.yaml name/);
  const check = (data: string) =>
    boot(`${directory}/gateway.yaml`, { mode: 'check', environment: { DATA_DIR: data }, log: createLog('silent') });
  for (const data of [directory, temporaryDirectory('elsewhere-')]) await (await check(data)).stop(0);
});

const { key, cert } = certificates.client;
const written = {
  speaks: { chat: 'https://vendor.example/v1' },
  keys: [{ key: 'one', proxy: 'secret:proxy' }, 'two'],
  tls: { cert, key: 'secret:client' },
};
const lookup = (stored: Record<string, string>) => ({
  texts: (name: string) => [stored[name] ?? []].flat(),
  state: (name: string) => (name in stored ? ('stored' as const) : ('missing' as const)),
});

test("a vendor takes its proxy and its certificate's key from stored secrets, and is left out where they are missing or unusable", () => {
  const section = providersSchema.parse({ acme: written })['acme']!;
  assert.deepEqual(namesIn(section).sort(), ['client', 'proxy']);
  const proxy = 'socks5://user:password@proxy.example:1080';
  const filled = filledIn(section, lookup({ proxy, client: key }));
  assert.deepEqual([filled.keys, filled.keyProxies, filled.tls!.key], [['one', 'two'], [proxy, undefined], key]);
  for (const stored of [{ proxy }, { client: key }, { proxy: 'proxy.example', client: key }, { proxy, client: 'none' }])
    assert.deepEqual(filledIn(section, lookup(stored as Record<string, string>)).keys, []);
});
