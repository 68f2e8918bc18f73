/** Cohere's chat protocol, version 2: `/v2/chat`. */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { openingNamed } from '../common/wire/opening-frames.ts';
import { type WireProtocol, wireProtocols } from '../common/wire/protocols.ts';
import { CohereDecoder, decodeReply } from './decode.ts';
import { encodeRequest, path } from './encode.ts';
import { CohereUsageMeter } from './usage-meter.ts';

const protocol: WireProtocol = {
  name: 'cohere',
  path,
  answersOnce: true,
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: [],
  defaultHeaders: {},
  codec: { needsBytes: [], encodeRequest, createDecoder: (events) => new CohereDecoder(events), decodeReply },
  createUsageMeter: (_call, options) => new CohereUsageMeter(options),
  isOpening: openingNamed('message-start'),
};

export default definePlugin({
  name: 'cohere',
  config: z.strictObject({}),
  extends: [wireProtocols],
  setup(host) {
    host.extend(wireProtocols, protocol);
    return {};
  },
});
