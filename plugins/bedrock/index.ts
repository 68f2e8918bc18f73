/** The Converse protocol of Bedrock: `/model/{id}/converse` and `/model/{id}/converse-stream`. */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { textOf } from '../../core/json/json.ts';
import { type WireProtocol, wireProtocols } from '../common/wire/protocols.ts';
import { ConverseDecoder, decodeReply } from './decode.ts';
import { encodeRequest } from './encode.ts';
import { eventStream } from './event-stream.ts';
import { ConverseUsageMeter } from './usage-meter.ts';

const protocol: WireProtocol = {
  name: 'bedrock',
  path: '/model/{model}/converse',
  // Of long-lived API keys; signed requests have the scheme of AWS.
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: [],
  defaultHeaders: {},
  codec: {
    needsBytes: ['image', 'document'],
    encodeRequest,
    createDecoder: (events) => new ConverseDecoder(events),
    decodeReply,
  },
  createUsageMeter: () => new ConverseUsageMeter(),
  framing: eventStream,
  readError: (body, headers) => ({
    error: {
      message: textOf(body['message']) ?? textOf(body['Message']) ?? 'The model refused the request.',
      code: (headers['x-amzn-errortype'] ?? textOf(body['__type']) ?? '').replace(/^.*#|:.*$/g, ''),
    },
  }),
};

export default definePlugin({
  name: 'bedrock',
  config: z.strictObject({}),
  extends: [wireProtocols],
  setup(host) {
    host.extend(wireProtocols, protocol);
    return {};
  },
});
