/**
 * A change of the gateway's own secrets in a whole gateway that serves: on PostgreSQL by two processes that take each step at different times,
 * else by one. Lists change at reloads; keys, sessions, second factors and seals of each moment hold in all of them.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { base32 } from '@better-auth/utils/base32';
import { createOTP } from '@better-auth/utils/otp';
import { boot } from '../../../core/gateway/boot.ts';
import { createLog } from '../../../core/gateway/log.ts';
import { databaseUrl } from '../../helpers/database.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { Browser } from '../console/browser.ts';
import { signIn } from '../console/start-console.ts';

type Secrets = readonly [string, ...string[]];
const [old, next, stranger] = ['old', 'next', 'stranger'].map(
  (name) => `the-${name}-secret-of-a-whole-gateway-000`,
) as [string, string, string];

/** What a vendor got back of its own reasoning in the last request. */
let returned: string | undefined;
const vendor = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  returned = /"signature":"([^"]+)"/.exec(Buffer.concat(chunks).toString())?.[1];
  response.setHeader('content-type', 'application/json');
  const content = [
    { type: 'thinking', thinking: 'so', signature: 'made-by-the-vendor' },
    { type: 'text', text: 'x' },
  ];
  const usage = { input_tokens: 1, output_tokens: 1 };
  response.end(
    JSON.stringify({
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content,
      stop_reason: 'end_turn',
      usage,
    }),
  );
});
before(() => new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve)));
after(() => void vendor.close());

const rows =
  databaseUrl === undefined ? '' : `schema: rotation_${process.pid}\nstorage: { database: "${databaseUrl}" }\n`;
const yamlOf = (auth: readonly string[], seals = auth, people = auth) => `gateway: test
listen: 127.0.0.1:0
plugins: [storage, auth, plans, providers, models, route, protocol-convert, console]
${rows}auth: { secret: ${JSON.stringify(auth)} }
protocol-convert: { seal_secret: ${JSON.stringify(seals)} }
console: { sign_up: open, secret: ${JSON.stringify(people)} }
plans: { default: free, offers: { free: { price: 0 } } }
providers: { v: { keys: k, speaks: { messages: "http://127.0.0.1:${(vendor.address() as AddressInfo).port}" } } }
models: { m: { owned_by: x, targets: [v/m], price: free, traits: { reasoning: adaptive } } }
`;

interface Node {
  readonly directory: string;
  gateway: TestGateway;
}
interface Made<T> {
  readonly by: string;
  readonly value: T;
}

const who = { email: 'ada@example.test', password: 'another long password' };

/** Everything that clients hold, and whether it is good on a process. */
class Holdings {
  readonly keys: string[] = [];
  sessions: Made<string>[] = [];
  seals: Made<object[]>[] = [];
  factor = '';

  async makeOn({ gateway }: Node, by: string): Promise<void> {
    const name = `key ${this.keys.length}`;
    const command = gateway.gateway.commands.find((each) => each.name === 'keys create')!;
    const { key } = (await command.run({ account: 'team', name })).json as { key: string };
    this.keys.push(key);
    this.sessions.push({ by, value: await this.#signInTo(gateway.origin) });
    const { output } = (await this.#answer(gateway.origin, key, 'Hello')) as { output: object[] };
    assert.match(JSON.stringify(output), /"encrypted_content":"gw1\./);
    this.seals.push({ by, value: output });
  }

  /** With the second factor, by a code of a later time than any before. */
  async #signInTo(origin: string): Promise<string> {
    later();
    const browser = new Browser(origin);
    assert.equal((await signIn(browser, who)).json.twoFactorRedirect, true);
    const code = await createOTP(this.factor).hotp(Math.floor(Date.now() / 30_000));
    const { status, text } = await browser.send('/auth/two-factor/verify-totp', { body: { code } });
    assert.equal(status, 200, text);
    return browser.cookieHeader();
  }

  async #answer(origin: string, key: string, input: unknown): Promise<object> {
    const answer = await fetch(`${origin}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', input, store: false, include: ['reasoning.encrypted_content'] }),
    });
    assert.equal(answer.status, 200, await answer.clone().text());
    return (await answer.json()) as object;
  }

  async areGoodOn({ gateway: { origin } }: Node): Promise<void> {
    for (const key of this.keys) await this.#answer(origin, key, 'Hello');
    for (const { value } of this.seals) {
      const turn = (content: string) => ({ role: 'user', content });
      await this.#answer(origin, this.keys[0]!, [turn('Hello'), ...value, turn('And?')]);
      assert.equal(returned, 'made-by-the-vendor', 'a seal is opened');
    }
    for (const { value } of this.sessions)
      assert.equal((await fetch(`${origin}/console/api/me`, { headers: { cookie: value } })).status, 200);
    await this.#signInTo(origin);
  }

  /** What clients carry and was not made by this secret ends with the other one. */
  keepMadeBy(secret: string): void {
    this.sessions = this.sessions.filter(({ by }) => by === secret);
    this.seals = this.seals.filter(({ by }) => by === secret);
  }
}

let later: () => void = () => undefined;
const write = ({ directory }: Node, yaml: string) => writeFileSync(join(directory, 'gateway.yaml'), yaml);

async function change(node: Node, yaml: string): Promise<string[]> {
  write(node, yaml);
  const { problems, changes } = await node.gateway.gateway.reload();
  assert.deepEqual(
    changes.filter(({ restart }) => restart),
    [],
  );
  return problems.map(({ message }) => message);
}

async function rotate({ directory }: Node): Promise<Record<string, number>> {
  const environment = { DATA_DIR: directory };
  const log = createLog('silent');
  const gateway = await boot(join(directory, 'gateway.yaml'), { mode: 'command', environment, log });
  const { json } = await gateway.commands.find(({ name }) => name === 'secrets rotate')!.run({});
  await gateway.stop(0);
  return Object.fromEntries((json as { setting: string; left: number }[]).map(({ setting, left }) => [setting, left]));
}

/** Lists of each process at each moment. */
const steps: readonly (readonly Secrets[])[] =
  databaseUrl === undefined
    ? [[[old]], [[old, next]], [[next, old]]]
    : [
        [[old], [old]],
        [[old, next], [old]],
        [
          [next, old],
          [old, next],
        ],
        [
          [next, old],
          [next, old],
        ],
      ];

test('keys, sessions, second factors and seals stay valid on every process through a change of all secrets, and another secret is refused', {
  timeout: 240_000,
}, async (context) => {
  context.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  later = () => context.mock.timers.setTime(Date.now() + 31_000);
  const held = new Holdings();
  const nodes: Node[] = [];
  const start = (directory: string, yaml: string) => startGateway(yaml, { directory });
  for (const secrets of steps[0]!) {
    const directory = temporaryDirectory('rotation-fleet-');
    nodes.push({ directory, gateway: await start(directory, yamlOf(secrets)) });
  }
  context.after(() => Promise.all(nodes.map(({ gateway }) => gateway.stop())));
  const [first] = nodes as [Node, ...Node[]];
  await first.gateway.gateway.commands.find(({ name }) => name === 'accounts create')!.run({ name: 'team' });
  const ada = new Browser(first.gateway.origin);
  await ada.send('/auth/sign-up/email', { body: { ...who, name: 'Ada' } });
  const begun = await ada.send('/auth/two-factor/enable', { body: { password: who.password } });
  held.factor = Buffer.from(base32.decode(new URL(begun.json.totpURI).searchParams.get('secret')!)).toString();
  const code = await createOTP(held.factor).hotp(Math.floor(Date.now() / 30_000));
  assert.equal((await ada.send('/auth/two-factor/verify-totp', { body: { code } })).status, 200);

  for (const lists of steps) {
    for (const [index, secrets] of lists.entries()) assert.deepEqual(await change(nodes[index]!, yamlOf(secrets)), []);
    for (const [index, node] of nodes.entries()) await held.makeOn(node, lists[index]![0]);
    for (const node of nodes) await held.areGoodOn(node);
  }
  // What is left is written when a process ends, or soon.
  const [lacking = 'nothing'] = await change(first, yamlOf([next], [next, old], [next, old]));
  assert.match(lacking, /^auth: auth\.secret lacks the one that \d+ keys still need/);
  for (const [message, ...lists] of [
    [/auth\.secret is not the one/, [stranger], [next, old]],
    [/seal_secret is not the one/, [next, old], [stranger]],
  ] as const) {
    const [said] = await change(first, yamlOf(...(lists as unknown as [Secrets, Secrets]), [next, old]));
    assert.match(said!, message);
    await held.areGoodOn(first);
  }
  write(first, yamlOf([next, old]));
  for (const node of nodes) await node.gateway.stop();
  assert.deepEqual(await rotate(first), {
    'auth.secret': 0,
    GATEWAY_SECRETS_KEY: 0,
    'protocol-convert.seal_secret': 0,
    'console.secret': 0,
  });
  for (const node of nodes) node.gateway = await start(node.directory, yamlOf([next, old]));
  for (const node of nodes) await held.areGoodOn(node);

  held.keepMadeBy(next);
  for (const node of nodes) {
    assert.deepEqual(await change(node, yamlOf([next])), []);
    for (const each of nodes) await held.areGoodOn(each);
  }
  const elsewhere = temporaryDirectory('rotation-fleet-');
  if (databaseUrl !== undefined) {
    await assert.rejects(start(elsewhere, yamlOf([stranger])), /auth\.secret is not the one/);
    await assert.rejects(start(elsewhere, yamlOf([next], [stranger])), /seal_secret is not the one/);
  }
});
