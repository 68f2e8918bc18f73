/** A server of an earlier revision, written by hand: it refuses what its revision does not allow, and keeps why. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

// biome-ignore lint/suspicious/noExplicitAny: messages of many shapes are asserted on
export type Message = any;

/** `stream`: the messages are events, `cut`: the connection breaks after them. Otherwise the last one is the body. */
export interface Reply {
  readonly messages: readonly object[];
  readonly form?: 'stream' | 'cut';
  /** Comes first: an event that has an id and no data, as servers send that let clients ask again. */
  readonly firstId?: string;
}

export interface StrictServer {
  readonly url: string;
  /** Methods of all messages, oldest first. */
  readonly seen: string[];
  /** Why requests were refused. */
  readonly faults: string[];
  stop(): Promise<void>;
}

export type Respond = (message: Message) => Reply;

export const result = ({ id }: Message, members: object) => ({ jsonrpc: '2.0', id, result: members });

export const tool = (name: string) => ({ name, inputSchema: { type: 'object', properties: {} } });

/** `respond` answers all requests but `initialize`. */
export async function startStrictServer(version: string, respond: Respond): Promise<StrictServer> {
  const session = `session of ${version}`.replaceAll(' ', '-');
  const [seen, faults]: [string[], string[]] = [[], []];
  let ready = false;
  const server = createServer((request, response) => {
    void messageOf(request).then((message) => {
      const method = message?.method ?? request.method!;
      seen.push(method);
      // A request of a later revision, by which clients find out which one is spoken here.
      if (method === 'server/discover') return refuse(response, 'initialize first');
      const fault = faultOf(request, message, { version, session, ready });
      if (fault !== undefined) {
        faults.push(`${method}: ${fault}`);
        return refuse(response, fault);
      }
      if (request.method === 'DELETE') return response.end();
      ready = method !== 'initialize';
      if (method === 'initialize') {
        const capabilities = { tools: { listChanged: true }, resources: { listChanged: true }, prompts: {} };
        const members = { protocolVersion: version, capabilities, serverInfo: { name: 'strict', version: '1' } };
        return write(response, { messages: [result(message, members)] }, { 'mcp-session-id': session });
      }
      if (message.id === undefined) return response.writeHead(202).end();
      return write(response, respond(message), {});
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    ...{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, seen, faults },
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function messageOf(request: IncomingMessage): Promise<Message> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString());
}

interface Expected {
  readonly version: string;
  readonly session: string;
  /** The client has said that it is initialized. */
  readonly ready: boolean;
}

/** What the revision forbids of it. */
function faultOf(
  request: IncomingMessage,
  message: Message,
  { version, session, ready }: Expected,
): string | undefined {
  const { method, headers } = request;
  if (method === 'GET') return 'no stream was offered';
  const fault = method === 'POST' ? formFault(headers, message) : undefined;
  if (fault !== undefined) return fault;
  const isFirst = message?.method === 'initialize';
  if (headers['mcp-session-id'] !== (isFirst ? undefined : session)) return `session ${headers['mcp-session-id']}`;
  if (isFirst) return typeof message.params.clientInfo?.name === 'string' ? undefined : 'no clientInfo';
  // The header came with 2025-06-18.
  if (version > '2025-03-26' && headers['mcp-protocol-version'] !== version)
    return `mcp-protocol-version ${headers['mcp-protocol-version']}`;
  return ready || message?.method === 'notifications/initialized' ? undefined : 'not initialized yet';
}

function formFault(headers: IncomingMessage['headers'], message: Message): string | undefined {
  if (headers['content-type'] !== 'application/json') return `content-type ${headers['content-type']}`;
  const kinds = headers.accept?.split(', ').toSorted().join();
  if (kinds !== 'application/json,text/event-stream') return `accept ${headers.accept}`;
  if (message.jsonrpc !== '2.0') return 'no JSON-RPC 2.0';
  const meta = Object.keys(message.params?._meta ?? {}).filter((name) => name !== 'progressToken');
  return meta.length === 0 ? undefined : `_meta of another revision: ${meta}`;
}

function refuse(response: ServerResponse, reason: string): void {
  const body = { jsonrpc: '2.0', id: null, error: { code: -32_600, message: reason } };
  response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function write(response: ServerResponse, { messages, form, firstId }: Reply, headers: Record<string, string>): void {
  if (form === undefined) {
    response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', ...headers });
    response.end(JSON.stringify(messages.at(-1)));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers });
  if (firstId !== undefined) response.write(`id: ${firstId}\nretry: 600000\ndata:\n\n`);
  for (const message of messages) response.write(`: a comment\r\ndata: ${JSON.stringify(message)}\r\n\r\n`);
  if (form === 'stream') response.end();
  // What was written arrives before the end.
  else response.write(': the last words\n\n', () => response.destroy());
}
