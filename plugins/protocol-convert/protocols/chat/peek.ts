/** Reads what the gateway must know of a chat request. Pure. */
import type { Call } from '../../../../core/vocabulary.ts';
import { countOf, largest, modelOf, requireList, streamOf } from '../../checks.ts';
import { measureMedia, promptTokens } from '../../estimate.ts';
import { objectOf } from '../../json.ts';
import type { RequestBody } from '../../protocol.ts';

/** Throws invalid_request that names the field. */
export function peekChat({ json, bytes }: RequestBody): Call {
  const model = modelOf(json);
  const messages = requireList(json, 'messages');
  const media = { characters: 0, tokens: 0 };
  for (const message of messages) measureMedia(objectOf(message)?.['content'], media);
  return {
    protocol: 'chat',
    model,
    stream: streamOf(json),
    billable: true,
    inputTokens: promptTokens(bytes.length, media),
    maxOutputTokens: largest(countOf(json, 'max_tokens', 0), countOf(json, 'max_completion_tokens', 0)),
    choices: countOf(json, 'n', 1) ?? 1,
  };
}
