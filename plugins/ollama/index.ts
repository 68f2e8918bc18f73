/** The native protocol of Ollama servers: `/api/chat`, with streams of JSON lines. */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { objectOf } from '../../core/json/json.ts';
import { jsonLines } from '../common/wire/json-lines.ts';
import { isBlankBut, openingWhere } from '../common/wire/opening-frames.ts';
import { type WireProtocol, wireProtocols } from '../common/wire/protocols.ts';
import { createDecoder, decodeReply } from './decode.ts';
import { encodeRequest, path } from './encode.ts';
import { OllamaUsageMeter } from './usage-meter.ts';

const protocol: WireProtocol = {
  name: 'ollama',
  path,
  answersOnce: true,
  // A server of one's own asks for no key and ignores it.
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: [],
  defaultHeaders: {},
  codec: { needsBytes: ['image'], encodeRequest, createDecoder, decodeReply },
  createUsageMeter: () => new OllamaUsageMeter(),
  isOpening: openingWhere(({ done, message }) => done === false && isBlankBut(objectOf(message) ?? {}, 'role')),
  framing: jsonLines,
};

export default definePlugin({
  name: 'ollama',
  config: z.strictObject({}),
  extends: [wireProtocols],
  setup(host) {
    host.extend(wireProtocols, protocol);
    return {};
  },
});
