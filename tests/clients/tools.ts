/** Coding clients call a tool of the gateway by MCP: it is in their list, it is called once for each turn, and it is on the bill of its model's account. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';
import { type Client, clients, codexConfig } from './clients.ts';
import { run } from './launch.ts';
import { type AgentVendor, startAgentVendor, upstreamModel } from './vendor.ts';

interface Server {
  readonly url: string;
  readonly headers: { readonly Authorization: string };
}

/** How a client is given a server: settings that a person has, by path in the home, or words of its command line. */
interface Way {
  readonly client: string;
  readonly settings?: (server: Server) => Readonly<Record<string, string>>;
  readonly words?: (server: Server) => readonly string[];
  /** It searches for the tool first, and declares it when it is found. */
  readonly searches?: true;
  readonly environment?: (server: Server) => Readonly<Record<string, string>>;
}

const ways: readonly Way[] = [
  {
    client: 'Claude Code',
    words: (server) => [
      ...['--mcp-config', JSON.stringify({ mcpServers: { gateway: { type: 'http', ...server } } })],
      ...['--strict-mcp-config', '--allowedTools', 'mcp__gateway'],
    ],
  },
  {
    client: 'Codex CLI',
    searches: true,
    // Without `required` the turn may begin before the server's tools are known.
    settings: ({ url, headers: { Authorization } }) => ({
      '.codex/config.toml': `${codexConfig}
[mcp_servers.gateway]
url = ${JSON.stringify(url)}
http_headers = { Authorization = ${JSON.stringify(Authorization)} }
required = true
`,
    }),
  },
  {
    client: 'Qwen Code',
    settings: ({ url, headers }) => ({
      '.qwen/settings.json': JSON.stringify({
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        mcpServers: { gateway: { httpUrl: url, headers, trust: true } },
      }),
    }),
  },
  {
    client: 'Gemini CLI',
    // As the page for clients writes them, with the key in a variable.
    settings: ({ url }) => ({
      '.gemini/settings.json': JSON.stringify({
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        mcpServers: { gateway: { httpUrl: url, headers: { Authorization: 'Bearer $GATEWAY_KEY' }, trust: true } },
      }),
    }),
    // With NO_PROXY it brings a network library of its own, which hides the headers of answers from Node 26.
    environment: ({ headers }) => ({
      ...{ GATEWAY_KEY: headers.Authorization.replace('Bearer ', ''), NO_PROXY: '', no_proxy: '' },
    }),
  },
  {
    client: 'opencode',
    settings: ({ url, headers }) => ({
      '.config/opencode/opencode.json': JSON.stringify({
        share: 'disabled',
        mcp: { gateway: { type: 'remote', url, headers, enabled: true, oauth: false } },
      }),
    }),
  },
];

let vendor: AgentVendor;
let gateway: TestGateway;
before(async () => {
  vendor = await startAgentVendor('chat', () => ({ tool: 'sandbox__weather', input: { city: 'Oslo' } }));
  const names = [...new Set(clients.map(({ model }) => model)), 'claude-haiku-4-5-20251001', 'claude-haiku-5-5'];
  const models = names.map(
    (name) =>
      `  "${name}": { owned_by: test, targets: [vendor/${upstreamModel}], context: 1M, max_output: 128k, price: { input: 1, output: 2 } }\n`,
  );
  gateway = await startGateway(
    `include: config/demo.yaml\ngateway: demo\nschema: demo\nproviders: { vendor: { keys: k, speaks: { chat: "${vendor.base}" } } }\nmodels:\n${models.join('')}`,
  );
});
after(() => Promise.all([gateway?.stop(), vendor?.stop()]));

for (const way of ways)
  test(`${way.client} calls a tool of the gateway once, and its answer has the result`, {
    timeout: 120_000,
  }, async () => {
    const client = clients.find(({ name }) => name === way.client)!;
    const find = gateway.gateway.find.bind(gateway.gateway);
    const { id } = await find(accounts)!.create(way.client, 'free');
    await find(ledger)!.credit(id, parseUsd('100'), { kind: 'manual', reason: 'test', reference: way.client });
    const { key } = await find(accounts)!.createKey(id, { name: 'client' });
    const server = { url: `${gateway.origin}/mcp`, headers: { Authorization: `Bearer ${key}` } };
    const directory = await mkdtemp(join(tmpdir(), 'client-tools-'));
    try {
      const prompt = 'Ask the tool for the weather in Oslo, and say what it says.';
      vendor.requests.length = 0;
      const turn = { prompt, file: '', origin: gateway.origin, key };
      const finished = await run(withServer(client, way, server), directory, turn, () => undefined);
      const outcomes = vendor.requests.map(({ outcome }) => outcome).join('\n');
      const printed = `${outcomes}\n${finished.stdout}\n${finished.stderr}`;
      assert.equal(finished.exitCode, 0, printed);
      assert.equal(outcomes.includes('called tool_search'), way.searches === true, printed);
      const command = gateway.gateway.commands.find(({ name }) => name === 'ledger')!;
      const charges = await until('the charge of the tool', async () => {
        const { rows } = (await command.run({ account: id, limit: '1000' })).json as { rows: Charge[] };
        const found = rows.filter(({ kind, detail }) => kind === 'CHARGE' && detail?.usage?.['call'] === 1);
        return found.length > 0 && found;
      }).catch((error: Error) => assert.fail(`${error.message}\n${printed}`));
      assert.deepEqual(
        charges.map(({ change }) => change),
        ['-0.001'],
      );
      assert.match(client.answerIn(finished.stdout), /Oslo/, printed);
      assert.deepEqual(finished.strayed, []);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

interface Charge {
  readonly kind: string;
  readonly change: string;
  readonly detail?: { readonly usage?: Readonly<Record<string, number>> };
}

function withServer(client: Client, { settings, words: more, environment: variables }: Way, server: Server): Client {
  const before = settings?.(server);
  return {
    ...client,
    ...(before === undefined ? {} : { connects: { program: client.connects!.program, before } }),
    async prepare(turn) {
      const { words, environment } = await client.prepare(turn);
      // Tools that it would first have to look for.
      return {
        words: [...words, ...(more?.(server) ?? [])],
        environment: { ...environment, ...variables?.(server), ENABLE_TOOL_SEARCH: 'false' },
      };
    },
  };
}
