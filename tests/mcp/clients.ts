/** The gateway as a client of the suite's servers: each is added to it, and connected where it asks to sign in; then its tools are listed and called. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Opened } from './gateway.ts';
import { listen, type Started } from './server.ts';

interface Wanted {
  readonly url: string;
  readonly scenario: string;
  /** Credentials that a scenario has registered. */
  readonly context: { readonly client_id?: string; readonly client_secret?: string };
}

/** A program of the suite asks here. */
export function startClients(gateway: Opened): Promise<Started> {
  return listen(async (_, body) => {
    try {
      await play(gateway, JSON.parse(body) as Wanted);
      return new Response(null, { status: 204 });
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  });
}

let scenarios = 0;

async function play(gateway: Opened, { url, scenario, context }: Wanted): Promise<void> {
  const name = `scenario-${++scenarios}`;
  const signsIn = scenario.startsWith('auth/');
  const client = context.client_id === undefined ? {} : { client: context.client_id, secret: context.client_secret };
  const connect = signsIn ? { connect: { allow_private: true, ...client } } : {};
  await gateway.add(name, { url, allow_private: true, within: '10s', ...connect });
  if (signsIn) await gateway.connect(name);
  await callAll(gateway, name);
}

async function callAll({ origin, key }: Opened, server: string): Promise<void> {
  const client = new Client({ name: 'suite', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
  const requestInit = { headers: { authorization: `Bearer ${key}`, 'x-gateway-tools': server } };
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', origin), { requestInit }));
  try {
    const { tools } = await client.listTools();
    for (const tool of tools)
      await client.callTool({ name: tool.name, arguments: argumentsFor(tool.inputSchema) }).catch(() => {});
  } finally {
    await client.close();
  }
}

const argumentsFor = ({ properties = {} }: { readonly properties?: Record<string, unknown> | undefined }) =>
  Object.fromEntries(
    Object.entries(properties).map(([property, schema]) => {
      const { type } = schema as { readonly type?: string };
      return [property, type === 'number' || type === 'integer' ? 2 : 'x'];
    }),
  );
