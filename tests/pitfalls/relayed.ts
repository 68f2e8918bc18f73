/** Puts a vendor's bytes, right or odd, before a client of another protocol: the plugin alone, without sockets. */
import type { Traits } from '../../plugins/common/domain/traits.ts';
import { clients } from '../matrix/clients/index.ts';
import type { ClientRequest, Play, ProtocolName, Seen } from '../matrix/scenario.ts';
import { protocolNames } from '../matrix/scenario.ts';
import { vendors } from '../matrix/vendors/index.ts';
import {
  type RelayRequest,
  readBody,
  relay,
  Source,
  streamAnswer,
  wholeAnswer,
} from '../plugins/protocol-convert/harness.ts';

export const usage = { input: 31, cacheRead: 0, cacheWrite: 0, output: 17, reasoning: 0 };
export const hello: Play = { text: 'Grüß Gott, 世界 🌍!', meaning: 'stop', usage };
const question: ClientRequest = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] };

export interface Pair {
  readonly client: ProtocolName;
  readonly vendor: ProtocolName;
}

/** Every pair of two different protocols. */
export const pairs: readonly Pair[] = protocolNames.flatMap((client) =>
  protocolNames.filter((vendor) => vendor !== client).map((vendor) => ({ client, vendor })),
);

export const nameOf = ({ client, vendor }: Pair): string => `${vendor} upstream, ${client} client`;

/** The bytes of a vendor's stream. */
export function streamOf(vendor: ProtocolName, play: Play = hello): string {
  return vendors[vendor].stream(play, 'model').join('');
}

export interface AnswerOptions {
  readonly request?: ClientRequest;
  readonly traits?: Traits;
  /** How the upstream's stream ends; absent: in good order. */
  readonly end?: Error | 'hang';
  readonly isStream?: boolean;
  readonly provider?: string;
}

function requestFor(
  { client, vendor }: Pair,
  { request = question, traits = {}, isStream = true, provider = 'vendor' }: AnswerOptions,
): RelayRequest {
  const { path, headers, body } = clients[client].word(request, { model: 'model', isStream });
  return { path, headers, body, target: { protocol: vendor, traits, provider } };
}

/** The client's bytes of a stream that comes in these chunks. */
export async function bytesOf(pair: Pair, chunks: readonly (Uint8Array | string)[], options: AnswerOptions = {}) {
  const { answer } = await relay(requestFor(pair, options), streamAnswer(chunks, options.end));
  return readBody(answer.body);
}

/** What a client reads of a stream that comes in these chunks. */
export async function streamed(
  pair: Pair,
  chunks: string | readonly (Uint8Array | string)[],
  options: AnswerOptions = {},
): Promise<Seen> {
  const body = await bytesOf(pair, typeof chunks === 'string' ? [chunks] : chunks, options);
  return clients[pair.client].readStream(body.toString());
}

/** What a client reads of a whole answer. */
export async function whole(pair: Pair, body: string | object, options: AnswerOptions = {}): Promise<Seen> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const { answer } = await relay(requestFor(pair, { ...options, isStream: false }), wholeAnswer(text));
  return clients[pair.client].readWhole((await readBody(answer.body)).toString());
}

export interface Sent {
  /** The request as it left for the upstream. */
  readonly body: Record<string, unknown>;
  readonly dropped: string | undefined;
}

/** What is sent to an upstream of another protocol for this body of a client. Throws what the gateway refuses. */
export async function sent(
  pair: Pair,
  body: Record<string, unknown>,
  options: AnswerOptions & { readonly play?: Play } = {},
): Promise<Sent> {
  const requested = requestFor(pair, { ...options, isStream: false });
  const merged = { ...(JSON.parse(requested.body as string) as object), ...body };
  const { answer, sent: request } = await relay(
    { ...requested, body: merged },
    wholeAnswer(vendors[pair.vendor].whole(options.play ?? hello, 'model')),
  );
  return {
    body: JSON.parse(Buffer.from(request.body as Uint8Array).toString()) as Record<string, unknown>,
    dropped: answer.headers['x-gateway-dropped'],
  };
}

/** One turn of a conversation: what the vendor was sent, and what the client reads of its answer. */
export async function turn(pair: Pair, clientRequest: ClientRequest, play: Play, options: AnswerOptions = {}) {
  const isStream = options.isStream ?? true;
  const vendor = vendors[pair.vendor];
  const upstream = isStream ? streamAnswer([streamOf(pair.vendor, play)]) : wholeAnswer(vendor.whole(play, 'model'));
  const { answer, sent: request } = await relay(requestFor(pair, { ...options, request: clientRequest }), upstream);
  const text = (await readBody(answer.body)).toString();
  const client = clients[pair.client];
  return {
    body: Buffer.from(request.body as Uint8Array).toString(),
    seen: isStream ? client.readStream(text) : client.readWhole(text),
    dropped: answer.headers['x-gateway-dropped'],
  };
}

export { Source };
