/** Bedrock: Converse for all models, and models in their own formats by InvokeModel. */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { openingNamed } from '../common/wire/opening-frames.ts';
import { type WireProtocol, wireProtocols } from '../common/wire/protocols.ts';
import { claude } from './claude.ts';
import { ConverseDecoder, decodeReply } from './decode.ts';
import { encodeRequest } from './encode.ts';
import { readError } from './errors.ts';
import { eventStream } from './event-stream.ts';
import { llama, llama4 } from './llama.ts';
import { mistral, mistralText } from './mistral.ts';
import { nova } from './nova.ts';
import { ConverseUsageMeter } from './usage-meter.ts';

const converse: WireProtocol = {
  name: 'bedrock',
  path: '/model/{model}/converse',
  answersOnce: true,
  // For long-lived API keys; signed requests have the scheme of AWS.
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: [],
  defaultHeaders: {},
  codec: {
    needsBytes: ['image', 'document'],
    plainCallIds: true,
    encodeRequest,
    createDecoder: (events) => new ConverseDecoder(events),
    decodeReply,
  },
  createUsageMeter: () => new ConverseUsageMeter(),
  isOpening: openingNamed('messageStart'),
  framing: eventStream,
  readError,
};

export default definePlugin({
  name: 'bedrock',
  config: z.strictObject({}),
  extends: [wireProtocols],
  setup(host) {
    for (const protocol of [converse, claude, nova, llama, llama4, mistral, mistralText])
      host.extend(wireProtocols, protocol);
    return {};
  },
});
