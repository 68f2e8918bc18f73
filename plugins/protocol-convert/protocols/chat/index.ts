/** The chat-completions protocol. */
import type { Endpoint } from '../../../../core/contract/contract.ts';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { keepAliveLine } from '../../../common/kit/sse.ts';
import type { Protocol } from '../../../common/wire/protocols.ts';
import { chatCodec } from './codec.ts';
import { renderError, streamError } from './errors.ts';
import { isOpeningChunk } from './opening.ts';
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

export const chat: Protocol = {
  name: 'chat',
  path: '/chat/completions',
  address: 'POST /v1/chat/completions',
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: ['openai-beta'],
  defaultHeaders: {},
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
  createUsageMeter: (call, options) => new ChatUsageMeter(call, options),
  isOpening: isOpeningChunk,
  renderError,
  streamError,
  idleFrame: () => keepAliveLine,
  modelPlaces: [['model']],
  codec: chatCodec,
};
