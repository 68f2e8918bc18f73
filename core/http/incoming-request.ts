/** The client's request as plugins see it. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { BlockList } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { ClientRequest, Headers } from '../contract/message.ts';
import { parseAhead, slicedAboveBytes } from '../json/request-body.ts';
import { clientAddress } from './client-address.ts';

/** What an exchange needs of Node's request and response; a direct request has stand-ins (`direct.ts`). */
export type Incoming = Readable &
  Pick<IncomingMessage, 'method' | 'headers' | 'complete'> & {
    readonly socket: { readonly remoteAddress?: string | undefined };
  };

export type Outgoing = Writable &
  Pick<ServerResponse, 'headersSent' | 'chunkedEncoding' | 'flushHeaders' | 'writeContinue'> & {
    writeHead(status: number, headers: OutgoingHttpHeaders): unknown;
    /** The connection of a client over HTTP, while it is the answer's turn. */
    readonly socket?: Writable | null;
  };

export const emptyBody = new Uint8Array(0);
/** Shared; a request's query is never modified. */
const noQuery = new URLSearchParams();

/** The parts of a request's head that exchanges use. */
type Head = Pick<Incoming, 'method' | 'headers' | 'socket'>;

/** Query and address, which few need, are parsed on first use. */
export class IncomingRequest implements ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Headers>;
  readonly params: Readonly<Record<string, string | undefined>>;
  body: Uint8Array = emptyBody;
  openBody?: () => AsyncIterable<Uint8Array>;
  bodyBytes = 0;
  readonly #search: string;
  readonly #incoming: Head;
  readonly #proxies: BlockList | undefined;
  #query: URLSearchParams | undefined;
  #remoteAddress: string | undefined;

  /** `proxies`: trusted senders of X-Forwarded-For. */
  constructor(
    incoming: Head,
    path: string,
    search: string,
    params: Record<string, string | undefined>,
    proxies?: BlockList,
  ) {
    this.method = incoming.method!;
    this.path = path;
    this.headers = incoming.headers as Headers;
    this.params = params;
    this.#search = search;
    this.#incoming = incoming;
    this.#proxies = proxies;
  }

  /** A large one is parsed in slices. */
  async replaceBody(body: Uint8Array, isJson: boolean): Promise<void> {
    this.body = body;
    // Its values were counted when it came.
    if (isJson && body.length > slicedAboveBytes) await parseAhead(body, Number.MAX_SAFE_INTEGER, () => setImmediate());
  }

  get query(): URLSearchParams {
    this.#query ??= this.#search === '' ? noQuery : new URLSearchParams(this.#search);
    return this.#query;
  }

  get remoteAddress(): string {
    const { socket, headers } = this.#incoming;
    this.#remoteAddress ??= clientAddress(
      socket.remoteAddress ?? '',
      headers['x-forwarded-for'] as string | undefined,
      this.#proxies,
    );
    return this.#remoteAddress;
  }
}
