/** The generate-content protocol, put together. */
import type { Protocol, ProtocolEndpoint } from '../../protocol.ts';
import { dialectOf } from './client-frames.ts';
import { geminiCodec } from './codec.ts';
import { renderError, streamError } from './errors.ts';
import { JsonArrayReader } from './json-array.ts';
import { parsePath, peekGemini } from './peek.ts';
import { arrayAsSse, relayRequest, reshapeFor } from './relay.ts';
import { GeminiTap } from './tap.ts';

/** The method is a suffix of the last path segment, so one endpoint serves all three. */
function endpoint(path: string): ProtocolEndpoint {
  return {
    path,
    operation: 'generate-content',
    open(body, exchange) {
      const { model, method } = parsePath(exchange.request.params['*']);
      const call = peekGemini(body, model, method);
      const dialect = dialectOf(body.json, exchange.request.query);
      const reshape =
        method === 'countTokens' ? undefined : reshapeFor(dialect, call, Math.floor(exchange.receivedAt / 1000));
      return {
        protocol: gemini,
        call,
        json: body.json,
        prepare: (target) => relayRequest(body, method, call, target),
        ...(reshape === undefined ? {} : { reshape }),
      };
    },
  };
}

export const gemini: Protocol = {
  name: 'gemini',
  address: 'POST /v1beta/models/{model}:generateContent',
  auth: { header: 'x-goog-api-key', value: '{key}' },
  passedHeaders: [],
  defaultHeaders: {},
  endpoints: ['/v1beta/models/*', '/v1/models/*', '/v1alpha/models/*'].map(endpoint),
  createTap: (call) => new GeminiTap(call),
  arrayStreams: { createReader: (onFrame) => new JsonArrayReader(onFrame), reshape: arrayAsSse },
  renderError,
  streamError,
  codec: geminiCodec,
};
