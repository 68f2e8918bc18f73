/** An HTTP API behind the gateway: each operation of its OpenAPI document is a tool. */
import { ProtocolError } from '@modelcontextprotocol/client';
import type { Host } from '../../../core/contract/contract.ts';
import { isObject, type JsonObject, tryParse } from '../../../core/json/json.ts';
import { Unfetchable } from '../../../core/tools/guarded-fetch.ts';
import { scrubText } from '../../common/kit/scrub.ts';
import type { ServerConfig } from '../config.ts';
import { invalidParams, refuseLeft, Unavailable } from '../errors.ts';
import { Kept } from '../kept.ts';
import { type Tokens, tokensOf, withToken } from '../tokens.ts';
import { type Listed, offered, type RequestOptions, type Upstream, type UpstreamMethod } from '../upstream.ts';
import { requestOf } from './arguments.ts';
import type { Operation } from './operations.ts';
import { readOperations } from './read.ts';

interface Read {
  readonly tools: Listed['tools'];
  readonly operations: ReadonlyMap<string, Operation>;
}

const unknownMethod = -32_601;
/** Nothing was sent. */
const unconnected = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

export class HttpApi implements Upstream {
  readonly name: string;
  readonly settings: ServerConfig;
  readonly #host: Host;
  readonly #read: Kept<Read>;
  readonly #tokens: Tokens | undefined;

  constructor(host: Host, name: string, settings: ServerConfig, keepMs: number) {
    this.name = name;
    this.settings = settings;
    this.#host = host;
    this.#tokens = tokensOf(host, name, settings);
    this.#read = new Kept(() => this.#load(), host.clock, keepMs);
  }

  async list<K extends keyof Listed>(kind: K): Promise<Listed[K]> {
    return kind === 'tools' ? ((await this.#read.get()).tools as Listed[K]) : ([] as unknown as Listed[K]);
  }

  async request(method: UpstreamMethod, params: object, { signal }: RequestOptions): Promise<object> {
    if (method !== 'tools/call') throw new ProtocolError(unknownMethod, 'This server has tools alone.');
    const { name, arguments: given } = params as { name: string; arguments?: unknown };
    const operation = (await this.#read.get()).operations.get(name);
    if (operation === undefined) throw new ProtocolError(invalidParams, 'Unknown tool');
    const { settings } = this;
    const request = requestOf(operation, isObject(given) ? (given as JsonObject) : {}, settings.url!, settings.headers);
    try {
      const answer = await withToken(this.#tokens, (authorization) => {
        refuseLeft(signal);
        return this.#host.fetch(request.url, {
          ...{ method: operation.method, headers: { ...request.headers, ...authorization }, signal },
          ...(request.body === undefined ? {} : { body: request.body }),
          ...{ timeoutMs: settings.within, maxBytes: settings.answer, allowPrivate: settings.allow_private },
        });
      });
      const bytes = new Uint8Array(await answer.arrayBuffer());
      return resultOf(answer.status, answer.headers.get('content-type') ?? '', bytes);
    } catch (error) {
      if (signal.aborted && !(error instanceof Unavailable))
        throw new Unavailable('The request was cancelled.', true, error);
      throw this.#shown(error);
    }
  }

  async close(): Promise<void> {}

  async #load(): Promise<Read> {
    try {
      const { operations, leftOut } = await readOperations(this.settings, this.#host);
      if (leftOut.length > 0)
        this.#host.log.warn({ server: this.name, left_out: leftOut.slice(0, 20) }, 'operations of an API are no tools');
      const tools = offered(
        operations.map(({ tool }) => tool),
        this,
        this.#host.log,
      );
      return { tools, operations: new Map(operations.map((one) => [one.tool.name, one])) };
    } catch (error) {
      this.#host.log.warn({ server: this.name, error }, 'the document of an API cannot be read');
      throw new Unavailable('The server of this tool cannot be reached now.', false, error);
    }
  }

  #shown(error: unknown): Error {
    if (error instanceof Unavailable) return error;
    this.#host.log.warn({ server: this.name, error }, 'a request to an API failed');
    const { name, code } = Object(error) as { readonly name?: unknown; readonly code?: unknown };
    const wasSent = !(error instanceof Unfetchable && error.status === undefined) && !unconnected.has(String(code));
    if (name === 'TimeoutError') return new Unavailable('The server of this tool did not answer in time.', true, error);
    return new Unavailable('The server of this tool did not answer as it should.', wasSent, error);
  }
}

const longestError = 4_096;

/** The answer as the result of a tool. */
function resultOf(status: number, type: string, bytes: Uint8Array): object {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (status < 200 || status >= 300) {
    const text = scrubText(buffer.toString('utf8').slice(0, longestError * 4)).slice(0, longestError);
    return {
      content: [{ type: 'text', text: `The API answered with status ${status}. ${text}`.trim() }],
      isError: true,
    };
  }
  const [media = ''] = type.toLowerCase().split(';');
  const kind = /^(image|audio)\//.exec(media)?.[1];
  if (kind !== undefined && media !== 'image/svg+xml')
    return { content: [{ type: kind, data: buffer.toString('base64'), mimeType: media }] };
  if (media !== '' && !isText.test(media)) {
    const resource = { uri: 'answer:body', mimeType: media, blob: buffer.toString('base64') };
    return { content: [{ type: 'resource', resource }] };
  }
  const text = buffer.toString('utf8');
  const json = /\bjson$/.test(media) ? tryParse(text) : undefined;
  return { content: [{ type: 'text', text }], ...(isObject(json) ? { structuredContent: json } : {}) };
}

const isText = /^text\/|[/+](?:json|xml|yaml|csv|javascript|x-www-form-urlencoded|x-ndjson|jsonl)$/;
