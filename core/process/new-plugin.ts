/** `plugin new NAME`: writes the folder of a plugin with a test and a README, which run as they are. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CommandResult } from '../contract/commands.ts';
import { GatewayError } from '../contract/errors.ts';
import { builtInNames } from '../gateway/registry.ts';

export async function newPlugin(name: string): Promise<CommandResult> {
  if (!/^[a-z][a-z0-9-]{0,40}$/.test(name))
    throw new GatewayError(
      'invalid_request',
      'The name must be lower-case letters, digits and dashes, such as "word-list".',
    );
  if (builtInNames().includes(name))
    throw new GatewayError('invalid_request', `"${name}" is a built-in plugin: choose another name.`);
  if (existsSync(name)) throw new GatewayError('conflict', `"${name}" is there already.`);
  const files = Object.entries(filesOf(name));
  await mkdir(name);
  for (const [file, text] of files) await writeFile(join(name, file), text);
  const written = files.map(([file]) => join(name, file));
  const next = `Run its test with \`${testCommand(name)}\`, and add ./${name} to the "plugins" of a gateway file beside it.`;
  return { json: { files: written }, text: `wrote ${written.join(', ')}\n${next}` };
}

/** In a checkout of the gateway no package is installed under its name: its own runner resolves it. */
const checkoutRunner = new URL('../../tests/runner/run.ts', import.meta.url);

function testCommand(name: string): string {
  const file = `${name}/index.test.ts`;
  return existsSync(checkoutRunner) ? `npm run -s test:files -- ${file}` : `node --test ${file}`;
}

function filesOf(name: string): Record<string, string> {
  return {
    [entry]: plugin(name),
    'index.test.ts': test(name),
    'README.md': readme(name),
    'package.json': `${JSON.stringify({ name, version: '0.1.0', private: true, type: 'module', exports: `./${entry}` }, undefined, 2)}\n`,
  };
}

const entry = 'index.ts';

const plugin = (name: string) => `/** Names the model of an answer in a header. */
import { definePlugin, z } from 'model-gateway';
import { call } from 'model-gateway/domain';

export default definePlugin({
  name: '${name}',
  config: z.strictObject({
    header: z.string().default('x-${name}').describe('Header of answers with the name of the model.'),
  }),
  // Context values that are read below; in a list that sets them later, the start fails and names the plugin to move.
  requires: [call],
  setup(_host, { header }) {
    return {
      async handle(exchange, next) {
        const { model } = exchange.get(call);
        const answer = await next();
        answer.headers[header] = model;
        return answer;
      },
    };
  },
});
`;

const test = (name: string) => `/** The plugin in a gateway of its own, in front of a vendor that replays answers. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chatAnswer, checkGateway, startGateway, startVendor, type TestGateway, type Vendor } from 'model-gateway/testing';

let vendor: Vendor;
let gateway: TestGateway;

const config = (section: object = {}) => ({
  plugins: ['providers', 'models', './', 'route', 'protocol-convert'],
  '${name}': section,
  providers: { vendor: { keys: 'vendor-key', speaks: { chat: \`\${vendor.origin}/v1\` } } },
  models: { 'some-model': { owned_by: 'vendor', targets: ['vendor'], price: 'free' } },
});

before(async () => {
  vendor = await startVendor();
  gateway = await startGateway(config(), { from: import.meta.dirname });
});
after(async () => {
  await gateway?.stop();
  await vendor.stop();
});

test('the answer names its model', async () => {
  vendor.play(chatAnswer('Hello!'));
  const answer = await gateway.post('/v1/chat/completions', {
    model: 'some-model',
    messages: [{ role: 'user', content: 'Hi' }],
  });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('x-${name}'), 'some-model');
});

test('an unknown setting is a problem', async () => {
  const problems = await checkGateway(config({ heeder: 'x-model' }), { from: import.meta.dirname });
  assert.match(problems.join(), /heeder/);
});
`;

const readme = (name: string) => `# ${name}

A plugin for model-gateway: answers name their model in a header.

\`\`\`yaml
plugins: [ …, models, ./${name}, route, … ]   # below \`models\`, and above \`route\`
${name}: { header: x-model }
\`\`\`

- \`model-gateway check FILE\` says whether it fits into the list.
- \`node --test ${name}/index.test.ts\` runs its test, where the package \`model-gateway\` is installed in this folder or above.
- \`plugins/README.md\` of model-gateway says where a plugin stands, what it sees there, and what it may add to others.
`;
