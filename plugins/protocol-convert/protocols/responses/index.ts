/** The responses protocol, put together. */
import type { Call } from '../../../../core/vocabulary.ts';
import { editBody } from '../../body-edits.ts';
import type { Opened, Protocol, RequestBody } from '../../protocol.ts';
import { responsesCodec } from './codec.ts';
import { renderError, streamError } from './errors.ts';
import { peekCompact, peekResponses } from './peek.ts';
import { ResponsesTap } from './tap.ts';

function open(call: Call, body: RequestBody, path: string): Opened {
  return { protocol: responses, call, prepare: (target) => ({ path, ...editBody(body, target) }) };
}

export const responses: Protocol = {
  name: 'responses',
  address: 'POST /v1/responses',
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: ['openai-beta'],
  defaultHeaders: {},
  endpoints: [
    { path: '/v1/responses', operation: 'responses', open: (body) => open(peekResponses(body), body, '/responses') },
    {
      path: '/v1/responses/compact',
      operation: 'compact',
      open: (body) => open(peekCompact(body), body, '/responses/compact'),
    },
  ],
  createTap: () => new ResponsesTap(),
  renderError,
  streamError,
  codec: responsesCodec,
};
