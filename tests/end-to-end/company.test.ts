/** The shipped file of a company's gateway, served as it is: sign-in by the company's provider, projects apart, equal calls from the cache. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chatAnswer } from '../../plugins/common/author/testing.ts';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { plans } from '../../plugins/common/domain/plans.ts';
import { databaseUrl, ownSchema } from '../helpers/database.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { startVendor, type Vendor } from '../helpers/vendor.ts';
import { dropSchema, modelAt, speaks, yamlOf } from './testbed.ts';

let vendor: Vendor;
let gateway: TestGateway;
const schema = ownSchema('company');

before(async () => {
  vendor = await startVendor();
  const sections = {
    schema,
    listen: '127.0.0.1:0',
    providers: { replay: { keys: 'k', speaks: speaks(vendor.origin) } },
    models: { replay: modelAt('replay') },
  };
  gateway = await startGateway(yamlOf(sections, 'config/company.yaml'), {
    environment: {
      OIDC_CLIENT_SECRET: 'a-secret-of-the-provider',
      COMPANY_NAME: 'Ada & Co',
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    },
  });
});
after(async () => {
  await gateway?.stop();
  await vendor.stop();
  await dropSchema(schema);
});

test("the sign-in page is up and offers the company's provider, and nothing is shown to strangers", async () => {
  const page = await fetch(`${gateway.origin}/console/`);
  assert.deepEqual([page.status, page.headers.get('content-type')?.split(';')[0]], [200, 'text/html']);
  const info = await fetch(`${gateway.origin}/console/api/info`);
  const { signUp, providers } = (await info.json()) as { signUp: string; providers: { id: string; name: string }[] };
  assert.equal(signUp, 'closed');
  assert.deepEqual(
    providers.map(({ id, name }) => [id, name]),
    [['company', 'Ada & Co']],
  );
  assert.equal((await fetch(`${gateway.origin}/v1/models`)).status, 401);
  for (const page of ['/docs/limits.md', '/llms.txt'])
    assert.doesNotMatch(await (await fetch(gateway.origin + page)).text(), /engineers|gpt-/, page);
});

test('the plans are the two of the file, and none of the files that it includes', () => {
  const names = gateway.gateway
    .find(plans)!
    .list()
    .map(({ name }) => name);
  assert.deepEqual(names.toSorted(), ['engineers', 'staff']);
});

test('a call is answered, the equal one comes from the cache for nothing, and another project makes its own', async () => {
  const book = gateway.gateway.find(accounts)!;
  await book.create('ada', 'engineers');
  const create = gateway.gateway.commands.find(({ name }) => name === 'keys create')!;
  vendor.play(chatAnswer('Green.') as never);
  const ask = async (project: string) => {
    const { key } = (await create.run({ account: 'ada', project })).json as { key: string };
    const answer = await fetch(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'replay', messages: [{ role: 'user', content: 'Which?' }] }),
    });
    assert.match(await answer.text(), /Green\./);
    return [answer.headers.get('x-cache'), answer.headers.get('age') === null];
  };
  assert.deepEqual(await ask('search'), ['miss', true]);
  assert.deepEqual(await ask('search'), ['hit', false]);
  assert.deepEqual(await ask('shop'), ['miss', true]);
  assert.equal(vendor.requests.length, 2);
});
