/** The responses protocol. */
import { keepAliveLine } from '../../../common/kit/sse.ts';
import { openingNamed } from '../../../common/wire/opening-frames.ts';
import type { Opened, Protocol, RequestBody } from '../../../common/wire/protocols.ts';
import { responsesCodec } from './codec.ts';
import { compactionAnswerCodec, compactionItemCodec } from './compaction-reply.ts';
import { compactionMaker } from './decode/input.ts';
import { inputItems } from './decode/input-items.ts';
import { renderError, streamError } from './errors.ts';
import { type Address, openRequest } from './open-request.ts';
import { preflightCompact, preflightInputTokens, preflightResponses } from './preflight.ts';
import { ResponsesUsageMeter } from './usage-meter.ts';

const protocol = () => responses;
const create: Address = { protocol, path: '/responses', preflight: preflightResponses, compaction: 'item' };
const compact: Address = { protocol, path: '/responses/compact', preflight: preflightCompact, compaction: 'answer' };
const count: Address = { protocol, path: '/responses/input_tokens', preflight: preflightInputTokens };

/** Opens a request for an answer, at any address. */
export function openCreate(body: RequestBody): Opened {
  return openRequest(body, create);
}

const needsModel = { types: ['application/json'], required: ['model'] };

export const responses: Protocol = {
  name: 'responses',
  path: '/responses',
  address: 'POST /v1/responses',
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: ['openai-beta'],
  defaultHeaders: {},
  answersOnce: true,
  endpoints: [
    {
      path: '/v1/responses',
      operation: 'responses',
      describes: [
        { summary: 'Answers an input.', body: needsModel, answers: ['application/json', 'text/event-stream'] },
      ],
      open: openCreate,
    },
    {
      path: '/v1/responses/compact',
      operation: 'compact',
      describes: [{ summary: 'Makes a conversation shorter.', body: needsModel }],
      open: (body) => openRequest(body, compact),
    },
    {
      path: '/v1/responses/input_tokens',
      operation: 'count-tokens',
      describes: [{ summary: 'Counts the tokens of an input.', body: needsModel }],
      charges: false,
      open: (body) => openRequest(body, count),
    },
  ],
  createUsageMeter: (_call, options) => new ResponsesUsageMeter(options),
  isOpening: openingNamed('response.created', 'response.in_progress', 'response.queued', 'keepalive'),
  renderError,
  streamError,
  idleFrame: () => keepAliveLine,
  modelPlaces: [['response', 'model'], ['model']],
  repeats: ['instructions', 'tools', 'text', 'prompt', 'metadata', 'user'],
  inputItems,
  compaction: {
    maker: compactionMaker,
    codec: (form, json, seal, failed) =>
      form === 'answer' ? compactionAnswerCodec(json, seal) : compactionItemCodec(seal, failed),
  },
  codec: responsesCodec,
};
