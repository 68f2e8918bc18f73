/** Requests of one protocol in the words of another: decoded, encoded, and what was lost on the way. No gateway, no sockets. */

import type { JsonObject } from '../../core/json/json.ts';
import type { EncodedRequest } from '../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../plugins/common/canonical/dropped-parameters.ts';
import type { Traits } from '../../plugins/common/domain/traits.ts';
import { protocolNamed } from '../../plugins/protocol-convert/protocols/index.ts';
import { makerOf } from '../../plugins/protocol-convert/translate/call.ts';
import type { Family } from '../helpers/recordings.ts';
import { targetFor } from '../plugins/protocol-convert/harness.ts';

export interface TranslatedRequest extends EncodedRequest {
  readonly dropped: readonly string[];
}

/** Throws what the codecs throw. */
export function translated(
  client: Family,
  json: JsonObject,
  upstream: Family,
  { traits = {}, stream = false }: { traits?: Traits; stream?: boolean } = {},
): TranslatedRequest {
  const codec = protocolNamed(client)!.codec;
  const losses = new DroppedParameters(codec.spelling);
  const prompt = codec.decodeRequest(json, { dropped: losses, open: () => undefined });
  const target = targetFor(upstream, 'model', { traits });
  const maxOutputTokens = undefined;
  const context = { target, traits, maker: makerOf(target), dropped: losses, stream, maxOutputTokens };
  const encoded = protocolNamed(upstream)!.codec.encodeRequest(prompt, context);
  return { ...encoded, dropped: losses.dropped };
}
