/** Requests of one protocol at another protocol's address: a chat-shaped compaction, and a responses-shaped chat request. */
import type { JsonObject } from '../../../core/json/json.ts';
import type { Opened, Protocol, ProtocolEndpoint, RequestBody } from '../../common/wire/protocols.ts';
import { chat } from './chat/index.ts';
import { asResponsesRequest, isResponsesRequest } from './responses/decode/from-chat.ts';
import { openCreate, responses } from './responses/index.ts';

const chatAddress = endpointAt(chat, '/v1/chat/completions');

/**
 * The specification's own compaction, for a terminal client: with `messages` it is a chat completion at that address. The
 * official one has `input`.
 */
export const responsesWithChat: Protocol = crossed(responses, '/v1/responses/compact', (official) => ({
  ...official,
  open: (body, exchange) => (isChatRequest(body.json) ? chatAddress : official).open(body, exchange),
}));

/**
 * Some editors send a responses body to the chat address and expect a chat completion: it is decoded as a responses request
 * and answered as chat. No upstream accepts it unchanged, so it is always translated.
 */
export const chatWithInput: Protocol = crossed(chat, chatAddress.path, (official) => ({
  ...official,
  open: (body, exchange) =>
    body.json['input'] !== undefined && isResponsesRequest(body.json)
      ? answeredAsChat(openCreate(inOwnWords(body)), body.json)
      : official.open(body, exchange),
}));

function isChatRequest(json: JsonObject): boolean {
  return json['messages'] !== undefined && json['messages'] !== null;
}

function inOwnWords(body: RequestBody): RequestBody {
  return { ...body, json: asResponsesRequest(body.json) };
}

function answeredAsChat(request: Opened, requested: JsonObject): Opened {
  const { builtOn } = request;
  return {
    ...request,
    protocol: chat,
    call: { ...request.call, protocol: chat.name },
    prepare: neverRelayed,
    clientJson: requested,
    decodeWith: responses,
    ...(builtOn === undefined
      ? {}
      : { builtOn: { ...builtOn, expanded: (...found) => answeredAsChat(builtOn.expanded(...found), requested) } }),
  };
}

function neverRelayed(): never {
  throw new Error('a responses request at the chat address is translated, never relayed');
}

function endpointAt(protocol: Protocol, path: string): ProtocolEndpoint {
  const endpoint = protocol.endpoints.find((candidate) => candidate.path === path);
  if (endpoint === undefined) throw new Error(`${protocol.name} has no endpoint at ${path}`);
  return endpoint;
}

function crossed(protocol: Protocol, path: string, change: (official: ProtocolEndpoint) => ProtocolEndpoint): Protocol {
  const official = endpointAt(protocol, path);
  const endpoints = protocol.endpoints.map((endpoint) => (endpoint === official ? change(official) : endpoint));
  return { ...protocol, endpoints };
}
