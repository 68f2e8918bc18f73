/** The completions protocol: one text goes on. Relayed to upstreams that have it, made by a conversation of one turn elsewhere. */
import type { Protocol } from '../../common/wire/protocols.ts';
import { chatFamily } from './chat/index.ts';
import { relayRequest } from './chat/relay-request.ts';
import { completionsCodec } from './completions-codec.ts';
import { preflightCompletions } from './completions-request.ts';

export const completions: Protocol = {
  name: 'completions',
  path: '/completions',
  address: 'POST /v1/completions',
  passedHeaders: [],
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
  ...chatFamily,
  codec: completionsCodec,
};
