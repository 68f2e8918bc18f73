/** The responses protocol, put together. */
import type { Opened, Protocol, RequestBody } from '../../protocol.ts';
import { responsesCodec } from './codec.ts';
import { renderError, streamError } from './errors.ts';
import { type Address, openRequest } from './opening.ts';
import { peekCompact, peekInputTokens, peekResponses } from './peek.ts';
import { ResponsesTap } from './tap.ts';

const protocol = () => responses;
const create: Address = { protocol, path: '/responses', peek: peekResponses, compaction: 'item' };
const compact: Address = { protocol, path: '/responses/compact', peek: peekCompact, compaction: 'answer' };
const count: Address = { protocol, path: '/responses/input_tokens', peek: peekInputTokens };

/** Opens a request for an answer, wherever it came. */
export function openCreate(body: RequestBody): Opened {
  return openRequest(body, create);
}

export const responses: Protocol = {
  name: 'responses',
  address: 'POST /v1/responses',
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: ['openai-beta'],
  defaultHeaders: {},
  endpoints: [
    { path: '/v1/responses', operation: 'responses', open: openCreate },
    { path: '/v1/responses/compact', operation: 'compact', open: (body) => openRequest(body, compact) },
    { path: '/v1/responses/input_tokens', operation: 'count-tokens', open: (body) => openRequest(body, count) },
  ],
  createTap: () => new ResponsesTap(),
  renderError,
  streamError,
  codec: responsesCodec,
};
