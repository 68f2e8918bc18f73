/** Answers one request of the protocol, of the stateless revision or an earlier one, by the official library. */
import {
  createMcpHandler,
  type McpHttpHandler,
  McpServer,
  ProtocolError,
  SERVER_INFO_META_KEY,
  type Server,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server';
import type { Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer, Headers } from '../../core/contract/message.ts';
import { isObject, type JsonObject } from '../../core/json/json.ts';
import { invalidParams, ownError, rpcCodes } from './errors.ts';
import { shownUri } from './names.ts';
import type { Asked } from './request.ts';
import type { Upstream } from './upstream.ts';

/** Makes the called tool's request, and records how it ended. */
export interface ToolCaller {
  run(params: JsonObject, context: ServerContext): Promise<object>;
  /** Resolves when the request is over, if one was made. */
  ended(): Promise<unknown>;
}

/** `signal` ends the request: its client has left, or has cancelled it. */
export function serve(exchange: Exchange, asked: Asked, signal: AbortSignal, caller: ToolCaller): Promise<Answer> {
  const handler = createMcpHandler(() => serverOf(asked, caller), { legacy: 'stateless' });
  return answered(handler, exchange, asked.message, signal, caller);
}

/** The answer of the library's handler to the request. */
export async function answered(
  ...[handler, { request }, message, signal, caller]: [
    handler: McpHttpHandler,
    exchange: Exchange,
    message: JsonObject,
    signal: AbortSignal,
    caller?: ToolCaller,
  ]
): Promise<Answer> {
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => isPassed(name)));
  // The library wants both kinds by name.
  if (headers['accept'] === undefined || headers['accept'].includes('*/*')) headers['accept'] = bothKinds;
  const answer = await handler.fetch(
    new Request(`http://gateway${request.path}`, { method: 'POST', headers, signal }),
    {
      parsedBody: message,
    },
  );
  return answerOf(answer, () => untilCancelled(answer.body!, signal, caller));
}

const bothKinds = 'application/json, text/event-stream';

const isPassed = (name: string): boolean => name === 'accept' || name === 'content-type' || name.startsWith('mcp-');

async function answerOf(response: Response, stream: () => AsyncIterable<Uint8Array>): Promise<Answer> {
  const headers: Headers = {};
  response.headers.forEach((value, name) => {
    if (name !== 'content-length' && name !== 'connection' && name !== 'keep-alive') headers[name] = value;
  });
  const isStream = headers['content-type']?.startsWith('text/event-stream') === true && response.body !== null;
  return { status: response.status, headers, body: isStream ? stream() : await response.text() };
}

/** A cancelled request gets no answer: its stream ends once it is known how the call ended. */
async function* untilCancelled(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  caller: ToolCaller | undefined,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
    await caller?.ended();
  } finally {
    signal.removeEventListener('abort', cancel);
    cancel();
  }
}

/** The library compares headers with the arguments that the called tool wants in both. */
class GatewayServer extends McpServer {
  readonly #found: Asked['found'];

  constructor(found: Asked['found']) {
    super({ name: 'model-gateway', version: '1' });
    this.#found = found;
    this.server.registerCapabilities({ tools: {}, resources: {}, prompts: {}, completions: {} });
  }

  override toolInputSchemaJson(): Record<string, unknown> | undefined {
    return this.#found?.tool.inputSchema;
  }
}

function serverOf(asked: Asked, caller: ToolCaller): McpServer {
  const product = new GatewayServer(asked.found);
  addHandlers(product.server, asked, caller);
  return product;
}

function addHandlers(server: Server, { servers, view }: Asked, caller: ToolCaller): void {
  server.setRequestHandler('tools/list', async () => ({ tools: await servers.tools(view) }));
  server.setRequestHandler('resources/list', async () => ({ resources: await servers.resources(view) }));
  server.setRequestHandler('resources/templates/list', async () => ({
    resourceTemplates: await servers.templates(view),
  }));
  server.setRequestHandler('prompts/list', async () => ({ prompts: await servers.prompts(view) }));
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const result = await caller.run(params as unknown as JsonObject, context).catch((error: unknown) => {
      throw asProtocolError(error);
    });
    return result as never;
  });
  server.setRequestHandler('resources/read', async ({ params }, context) => {
    const [upstream, uri] = servers.findResource(params.uri, view) ?? [];
    if (upstream === undefined)
      throw new ProtocolError(invalidParams, 'There is no such resource.', { uri: params.uri });
    return (await relayed(upstream, 'resources/read', { ...params, uri }, context)) as never;
  });
  server.setRequestHandler('prompts/get', async ({ params }, context) => {
    const [upstream, name] = (await servers.findPrompt(params.name, view)) ?? [];
    if (upstream === undefined) throw new ProtocolError(invalidParams, 'There is no such prompt.');
    return (await relayed(upstream, 'prompts/get', { ...params, name }, context)) as never;
  });
  server.setRequestHandler('completion/complete', async ({ params }, context) => {
    const { ref } = params;
    const isPrompt = ref.type === 'ref/prompt';
    const [upstream, of] =
      (isPrompt ? await servers.findPrompt(ref.name, view) : servers.findResource(ref.uri, view)) ?? [];
    if (upstream === undefined) throw new ProtocolError(invalidParams, 'There is nothing of this name to complete.');
    const shown = { ...params, ref: { ...ref, ...(isPrompt ? { name: of } : { uri: of }) } };
    return (await relayed(upstream, 'completion/complete', shown, context)) as never;
  });
}

/** An error inside an answer that has its status already. */
function asProtocolError(error: unknown): unknown {
  if (!(error instanceof GatewayError)) return error;
  return new ProtocolError(rpcCodes[error.kind] ?? ownError, error.message, { code: error.code ?? error.kind });
}

/** Sends a client's request on, with its progress and its end, and gives the result as clients of the gateway see it. */
export async function relayed(
  upstream: Upstream,
  method: Parameters<Upstream['request']>[0],
  params: object,
  { mcpReq }: ServerContext,
  tool?: Tool,
): Promise<object> {
  const { progressToken, ...meta } = (mcpReq._meta ?? {}) as JsonObject;
  const { _meta, ...plain } = params as JsonObject;
  const capabilities = (mcpReq.envelope as JsonObject | undefined)?.[capabilitiesKey];
  const kept = { ...meta, ...(capabilities === undefined ? {} : { [capabilitiesKey]: capabilities }) };
  const sent = {
    ...plain,
    ...(mcpReq.inputResponses === undefined ? {} : { inputResponses: mcpReq.inputResponses }),
    ...(mcpReq.requestState() === undefined ? {} : { requestState: mcpReq.requestState() }),
    ...(Object.keys(kept).length === 0 ? {} : { _meta: kept }),
  };
  const result = await upstream.request(method, sent, {
    signal: mcpReq.signal,
    tool,
    onprogress:
      progressToken === undefined
        ? undefined
        : (progress) =>
            void mcpReq.notify({ method: 'notifications/progress', params: { ...progress, progressToken } }),
  });
  return shownResult(upstream.name, result as JsonObject);
}

const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';

/** Without the server's name, and with addresses of resources by which the gateway finds them again. */
function shownResult(server: string, result: JsonObject): object {
  const { _meta, ...members } = result;
  const { [SERVER_INFO_META_KEY]: _info, ...meta } = isObject(_meta) ? _meta : {};
  const { content, contents, messages } = members;
  return {
    ...members,
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
    ...(Array.isArray(content) ? { content: content.map((part) => shownPart(server, part)) } : {}),
    ...(Array.isArray(contents) ? { contents: contents.map((one) => withUri(server, one)) } : {}),
    ...(Array.isArray(messages)
      ? {
          messages: messages.map((message) =>
            isObject(message) ? { ...message, content: shownPart(server, message['content']) } : message,
          ),
        }
      : {}),
  };
}

function shownPart(server: string, part: unknown): unknown {
  if (!isObject(part)) return part;
  if (part['type'] === 'resource_link') return withUri(server, part);
  if (part['type'] === 'resource') return { ...part, resource: withUri(server, part['resource']) };
  return part;
}

function withUri(server: string, one: unknown): unknown {
  return isObject(one) && typeof one['uri'] === 'string' ? { ...one, uri: shownUri(server, one['uri']) } : one;
}
