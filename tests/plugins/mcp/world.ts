/** A gateway with tool servers of both eras, made with the official library, and clients of both through it. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  createMcpHandler,
  isInitializeRequest,
  ProtocolError,
  Server,
  type ServerContext,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';

export type Era = 'modern' | 'legacy';

interface ToolServer {
  readonly origin: string;
  /** Every request that came, by method of the protocol. */
  readonly seen: { readonly method: string; readonly headers: Record<string, unknown>; readonly params: Params }[];
  /** Aborted calls. */
  readonly aborted: string[];
  /** Sessions that clients have ended. */
  readonly closed: string[];
  /** Set: every request is answered with this status. */
  status: number | undefined;
  /** Forgets the sessions of its clients. */
  restart(): void;
  stop(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: parameters of many shapes are asserted on
type Params = any;

const tools = ['zeta', 'echo', 'fails', 'throws', 'slow', 'big'].map((name) => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: { type: 'object' as const, properties: { text: { type: 'string' } } },
}));

/** An argument of it is a header too, in the revision without sessions. */
const routed = {
  name: 'routed',
  description: 'The tool routed.',
  inputSchema: { type: 'object' as const, properties: { text: { type: 'string', 'x-mcp-header': 'Region' } } },
};

function toolsOf(aborted: string[]): Server {
  const server = new Server(
    { name: 'secret-vendor', version: '1' },
    { capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} } },
  );
  server.setRequestHandler('tools/list', async () => ({ tools: [...tools, routed] }));
  server.setRequestHandler('tools/call', async ({ params }, context) => call(params, context, aborted) as never);
  server.setRequestHandler('resources/list', async () => ({ resources: [{ uri: 'note://1', name: 'one' }] }));
  server.setRequestHandler('resources/templates/list', async () => ({
    resourceTemplates: [{ uriTemplate: 'note://{id}', name: 'notes' }],
  }));
  server.setRequestHandler('resources/read', async ({ params }) => ({
    contents: [{ uri: params.uri, text: `read ${params.uri}` }],
  }));
  server.setRequestHandler('prompts/list', async () => ({ prompts: [{ name: 'greet' }] }));
  server.setRequestHandler('prompts/get', async ({ params }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `greet ${params.arguments?.['who']}` } }],
  }));
  server.setRequestHandler('completion/complete', async ({ params }) => ({
    completion: { values: [`${params.ref.type === 'ref/prompt' ? params.ref.name : params.ref.uri}!`] },
  }));
  return server;
}

async function call({ name, arguments: given }: Params, { mcpReq }: ServerContext, aborted: string[]): Promise<object> {
  const text = (value: string) => [{ type: 'text', text: value }];
  if (name === 'fails') return { content: text('no'), isError: true };
  if (name === 'throws') throw new ProtocolError(-32_602, 'refused by https://secret.example/x');
  if (name === 'big') return { content: text('x'.repeat(2_000_000)) };
  if (name === 'slow') {
    const { progressToken } = (mcpReq._meta ?? {}) as Params;
    if (progressToken !== undefined)
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 2 } });
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Number(given?.ms ?? 5_000));
      mcpReq.signal.addEventListener('abort', () => {
        clearTimeout(timer);
        aborted.push(name);
        resolve();
      });
    });
  }
  return {
    content: [...text(`${name}: ${given?.text}`), { type: 'resource_link', uri: 'note://1', name: 'one' }],
    structuredContent: { given },
  };
}

/** `legacy`: sessions, and no word of later revisions. */
async function startToolServer(era: Era): Promise<ToolServer> {
  const [seen, aborted, closed]: [ToolServer['seen'], string[], string[]] = [[], [], []];
  let sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const modern = createMcpHandler(() => toolsOf(aborted), { legacy: 'reject' });
  const answer = async (request: Request, body: Params): Promise<Response> => {
    if (era === 'modern') return modern.fetch(request, { parsedBody: body });
    const id = request.headers.get('mcp-session-id');
    if (id !== null) {
      const session = sessions.get(id);
      return session?.handleRequest(request, { parsedBody: body }) ?? new Response('no session', { status: 404 });
    }
    if (!isInitializeRequest(body)) return new Response('initialize first', { status: 400 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (made) => void sessions.set(made, transport),
      onsessionclosed: (made) => void closed.push(made),
    });
    await toolsOf(aborted).connect(transport);
    return transport.handleRequest(request, { parsedBody: body });
  };
  const world: { status: number | undefined } = { status: undefined };
  const server = createServer((request, response) => {
    void serveNode(request, response, async (made, body) => {
      seen.push({ method: body?.method, headers: request.headers, params: body?.params });
      return world.status === undefined ? answer(made, body) : new Response('down', { status: world.status });
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return Object.assign(world, {
    ...{ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen, aborted, closed },
    restart: () => {
      sessions = new Map();
    },
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

async function serveNode(
  request: IncomingMessage,
  response: ServerResponse,
  answer: (request: Request, body: Params) => Promise<Response>,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
  const made = new Request(`http://test${request.url}`, { method: request.method!, headers, signal: gone.signal });
  const given = await answer(made, text === '' ? undefined : JSON.parse(text));
  response.writeHead(given.status, Object.fromEntries(given.headers));
  try {
    if (given.body !== null) for await (const chunk of given.body) response.write(chunk);
  } catch {
    // The client has left.
  }
  response.end();
}

export interface World {
  readonly gateway: TestGateway;
  readonly servers: Readonly<Record<Era, ToolServer>>;
  account(usd: string, models?: readonly string[]): Promise<{ readonly id: string; readonly key: string }>;
  client(key: string, era: Era, options?: { path?: string; headers?: Record<string, string> }): Promise<Client>;
  balance(accountId: string): Promise<bigint>;
  /** The charges of the account, once `count` are there. */
  charges(
    accountId: string,
    count: number,
  ): Promise<readonly { readonly request: string; readonly change: string; readonly detail: Params }[]>;
  stop(): Promise<void>;
}

/** `servers`: YAML of more settings of both servers; `apis`: more servers; `plugins`, `below`: more of the list above billing and below; `more`: more of the file. */
export async function openWorld({
  servers: settings = '',
  apis = '',
  lists = '1m',
  commands = false,
  keys = false,
  plugins = '',
  below = '',
  more = '',
} = {}): Promise<World> {
  const [modern, legacy] = await Promise.all([startToolServer('modern'), startToolServer('legacy')]);
  const section = (name: string, { origin }: ToolServer) =>
    `    ${name}: { url: "${origin}/mcp", allow_private: true, headers: { x-key: of-${name} }${settings} }`;
  const gateway = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, telemetry, request-log, auth, plans, rate-limit, ${plugins} billing, mcp${below}]
plans: { default: free, offers: { free: { price: 0 } } }
mcp:
  lists: ${lists}
  commands: ${commands}
  keys: ${keys}
  servers:
${section('new', modern)}
${section('old', legacy)}
${apis}  bundles: { some: [old/*, new/e*] }
${more}
`);
  const find = gateway.gateway.find.bind(gateway.gateway);
  let names = 0;
  return {
    gateway,
    servers: { modern, legacy },
    async account(usd, models) {
      const name = `account ${++names}`;
      const { id } = await find(accounts)!.create(name, 'free');
      if (usd !== '0')
        await find(ledger)!.credit(id, parseUsd(usd), { kind: 'manual', reason: 'test', reference: name });
      const { key } = await find(accounts)!.createKey(id, { name, ...(models === undefined ? {} : { models }) });
      return { id, key };
    },
    async client(key, era, { path = '/mcp', headers = {} } = {}) {
      const client = new Client(
        { name: 'test', version: '1' },
        { versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' } },
      );
      const requestInit = { headers: { authorization: `Bearer ${key}`, ...headers } };
      await client.connect(new StreamableHTTPClientTransport(new URL(path, gateway.origin), { requestInit }));
      return client;
    },
    balance: (id) => find(ledger)!.balance(id),
    async charges(account, count) {
      const command = gateway.gateway.commands.find(({ name }) => name === 'ledger')!;
      return until(`${count} charges`, async () => {
        const { rows } = (await command.run({ account, limit: '1000' })).json as { rows: Params[] };
        const charges = rows.filter(({ kind }) => kind === 'CHARGE');
        return charges.length >= count && charges;
      });
    },
    async stop() {
      await gateway.stop();
      await Promise.all([modern.stop(), legacy.stop()]);
    },
  };
}
