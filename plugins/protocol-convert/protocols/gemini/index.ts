/** The generate-content protocol. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../../core/json/json.ts';
import { googleErrorAnswer } from '../../../common/kit/error-envelope.ts';
import { isBlank, isBlankBut, openingWhere } from '../../../common/wire/opening-frames.ts';
import type { Protocol, ProtocolEndpoint } from '../../../common/wire/protocols.ts';
import { geminiCodec } from './codec.ts';
import { dialectOf, streamError } from './encode/client-frames.ts';
import { JsonArrayReader } from './encode/json-array.ts';
import { imageCall } from './image-call.ts';
import { parsePath, preflightGemini } from './preflight.ts';
import { arrayAsSse, relayRequest, reshapeFor } from './relay.ts';
import { GeminiUsageMeter } from './usage-meter.ts';

const methods = [
  { method: 'generateContent', summary: 'Answers a conversation.', answers: ['application/json'] },
  {
    method: 'streamGenerateContent',
    summary: 'Answers a conversation as it is made.',
    answers: ['application/json', 'text/event-stream'],
  },
  { method: 'countTokens', summary: 'Counts the tokens of a conversation.', answers: ['application/json'] },
];

const carriageReturn = 0x0d;
const blankLines = { unix: Buffer.from('\n\n'), windows: Buffer.from('\r\n\r\n') };

/** The method is a suffix of the last path segment, so one endpoint serves all three. */
function endpoint(path: string): ProtocolEndpoint {
  return {
    path,
    operation: 'generate-content',
    describes: methods.map(({ method, summary, answers }) => ({
      summary,
      path: `${path.slice(0, -1)}{model}:${method}`,
      body: { types: ['application/json'], required: ['contents'] },
      answers,
    })),
    charges: ({ path }) => !path.endsWith(':countTokens'),
    open(body, exchange) {
      const { model, method } = parsePath(exchange.request.params['*']);
      const call = preflightGemini(body, model, method);
      const dialect = dialectOf(body.json, exchange.request.query);
      const reshape =
        method === 'countTokens' ? undefined : reshapeFor(dialect, call, Math.floor(exchange.receivedAt / 1000));
      return {
        protocol: gemini,
        call,
        json: body.json,
        prepare: (target, members) => relayRequest(body, method, call, target, members),
        ...(reshape === undefined ? {} : { reshape }),
      };
    },
  };
}

/** Candidates without a part, or with an empty text. */
const isOpeningChunk = openingWhere((json) => {
  const { candidates, usageMetadata: usage, promptFeedback, error } = json;
  if ((candidates ?? usage) === undefined || !isBlank(promptFeedback) || !isBlank(error)) return false;
  const { candidatesTokenCount = 0, thoughtsTokenCount = 0 } = objectOf(usage) ?? {};
  if (Number(candidatesTokenCount) > 0 || Number(thoughtsTokenCount) > 0) return false;
  return listOf(candidates).every((candidate) => isObject(candidate) && isEmpty(candidate));
});

function isEmpty({ content, ...rest }: JsonObject): boolean {
  const parts = listOf(objectOf(content)?.['parts']);
  return isBlankBut(rest, 'index') && parts.every((part) => isObject(part) && isBlankBut(part, 'thought'));
}

export const gemini: Protocol = {
  name: 'gemini',
  path: '/models',
  address: 'POST /v1beta/models/{model}:generateContent',
  auth: { header: 'x-goog-api-key', value: '{key}' },
  passedHeaders: [],
  defaultHeaders: {},
  endpoints: ['/v1beta/models/*', '/v1/models/*', '/v1alpha/models/*'].map(endpoint),
  createUsageMeter: (call, options) => new GeminiUsageMeter(call, options),
  isOpening: isOpeningChunk,
  framing: {
    begins: (byte) => byte === '[' || byte === '{',
    createReader: (onFrame) => new JsonArrayReader(onFrame),
    reshape: arrayAsSse,
  },
  renderError: googleErrorAnswer,
  streamError,
  // Google's clients in Python and Go fail on comments. That in Go cuts a stream at two line ends of one kind.
  idleFrame: (lastFrame) => (lastFrame?.at(-2) === carriageReturn ? blankLines.windows : blankLines.unix),
  modelPlaces: [['modelVersion']],
  imageCall,
  codec: geminiCodec,
};
