/** The completions protocol: one text goes on. Relayed to upstreams that have it, made by a conversation of one turn elsewhere. */
import { keepAliveLine } from '../../common/kit/sse.ts';
import type { Protocol } from '../../common/wire/protocols.ts';
import { renderError, streamError } from './chat/errors.ts';
import { isOpeningChunk } from './chat/opening.ts';
import { relayRequest } from './chat/relay-request.ts';
import { ChatUsageMeter } from './chat/usage-meter.ts';
import { completionsCodec } from './completions-codec.ts';
import { preflightCompletions } from './completions-request.ts';

export const completions: Protocol = {
  name: 'completions',
  path: '/completions',
  address: 'POST /v1/completions',
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: [],
  defaultHeaders: {},
  servesOwnClients: true,
  endpoints: [
    {
      path: '/v1/completions',
      operation: 'completions',
      describes: [
        {
          summary: 'Continues a text.',
          body: { types: ['application/json'], required: ['model', 'prompt'] },
          answers: ['application/json', 'text/event-stream'],
        },
      ],
      open(body) {
        const call = preflightCompletions(body);
        return {
          protocol: completions,
          call,
          json: body.json,
          prepare: (target, members) => ({
            ...relayRequest(body, call.stream, target, members, completions.name),
            path: completions.path,
          }),
        };
      },
    },
  ],
  createUsageMeter: (call, options) => new ChatUsageMeter(call, options),
  isOpening: isOpeningChunk,
  renderError,
  streamError,
  idleFrame: () => keepAliveLine,
  modelPlaces: [['model']],
  codec: completionsCodec,
};
