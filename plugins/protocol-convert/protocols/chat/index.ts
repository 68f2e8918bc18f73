/** The chat-completions protocol. */
import type { Endpoint } from '../../../../core/contract/contract.ts';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { isObject, type JsonObject, listOf, objectOf } from '../../../../core/json/json.ts';
import { keepAliveLine } from '../../../common/kit/sse.ts';
import { isBlank, isBlankBut, openingWhere } from '../../../common/wire/opening-frames.ts';
import type { Protocol } from '../../../common/wire/protocols.ts';
import { chatCodec } from './codec.ts';
import { renderError, streamError } from './errors.ts';
import { preflightChat } from './preflight.ts';
import { relayRequest } from './relay-request.ts';
import { ChatUsageMeter } from './usage-meter.ts';

/** Stored chat completions are not supported: each of their endpoints returns an error in the protocol's format. */
const storedCompletions = (
  [
    ['GET', ''],
    ['GET', '/:completion_id'],
    ['POST', '/:completion_id'],
    ['DELETE', '/:completion_id'],
    ['GET', '/:completion_id/messages'],
  ] as const
).map(
  ([method, rest]): Endpoint => ({
    method,
    path: `/v1/chat/completions${rest}`,
    operation: 'chat',
    body: 'none',
    renderError,
    handle() {
      const message = 'Chat completions are not stored here; responses are, at POST /v1/responses.';
      throw new GatewayError('not_found', message, { code: 'unsupported' });
    },
  }),
);

/** A role alone, or findings about the prompt before any choice. */
const isOpeningChunk = openingWhere(({ choices, usage, error }) => {
  const counts = objectOf(usage)?.['completion_tokens'];
  if (!Array.isArray(choices) || Number(counts ?? 0) > 0 || !isBlank(error)) return false;
  return listOf(choices).every((choice) => isObject(choice) && isEmpty(choice));
});

function isEmpty({ finish_reason: reason, delta, text, message }: JsonObject): boolean {
  if (!isBlank(reason) || !isBlank(text) || message !== undefined) return false;
  return isObject(delta) ? isBlankBut(delta, 'role') : text === '';
}

/** What completions have in common with it. */
export const chatFamily = {
  auth: { header: 'authorization', value: 'Bearer {key}' },
  defaultHeaders: {},
  createUsageMeter: (call, options) => new ChatUsageMeter(call, options),
  isOpening: isOpeningChunk,
  renderError,
  streamError,
  ignoresLastFrame: true,
  idleFrame: () => keepAliveLine,
  modelPlaces: [['model']],
} satisfies Partial<Protocol>;

export const chat: Protocol = {
  name: 'chat',
  path: '/chat/completions',
  address: 'POST /v1/chat/completions',
  passedHeaders: ['openai-beta'],
  endpoints: [
    {
      path: '/v1/chat/completions',
      operation: 'chat',
      describes: [
        {
          summary: 'Answers a conversation.',
          body: { types: ['application/json'], required: ['model', 'messages'] },
          answers: ['application/json', 'text/event-stream'],
        },
      ],
      open(body) {
        const call = preflightChat(body);
        return {
          protocol: chat,
          call,
          json: body.json,
          prepare: (target, members) => relayRequest(body, call.stream, target, members),
        };
      },
    },
  ],
  ownEndpoints: storedCompletions,
  ...chatFamily,
  codec: chatCodec,
};
