/**
 * Prepares a chat request for a chat upstream: the original bytes but for the alias, the dialect and the usage option. Pure.
 */

import { isObject } from '../../../../core/json/json.ts';
import type { Changes, Edit } from '../../../../core/json/splice.ts';
import type { Target } from '../../../common/domain/upstreams.ts';
import { editBody, type MemberChanges, nestedEdits } from '../../../common/kit/body-edits.ts';
import type { Prepared, RequestBody } from '../../../common/wire/protocols.ts';
import { relayedChoice } from '../../request/validated-choice.ts';

export function relayRequest(
  body: RequestBody,
  stream: boolean,
  target: Target,
  members?: MemberChanges,
  protocol = 'chat',
): Prepared {
  const requested = body.json['stream_options'];
  const clientWantsUsage = isObject(requested) && requested['include_usage'] === true;
  const refused = target.upstream.dropFields[protocol]?.includes('stream_options') ?? false;
  const add = stream && target.upstream.streamUsageOption && !clientWantsUsage && !refused;
  const { body: edited, dropped } = editBody(body, target, {
    ...(add ? requestUsage(body) : {}),
    members: body.json['tool_choice'] === undefined ? members : relayedChoice(body.json, members),
  });
  return { path: '/chat/completions', body: edited, dropped, ...(add ? { withholdUsage: true } : {}) };
}

/** Chat streams report usage only on request. An option of a wrong type is left for the upstream to refuse. */
function requestUsage(body: RequestBody): { changes?: Changes; edits?: readonly Edit[] } {
  const options = body.json['stream_options'];
  if (options === undefined) return { changes: { insert: { stream_options: '{"include_usage":true}' } } };
  if (options === null) return { changes: { replace: { stream_options: '{"include_usage":true}' } } };
  if (!isObject(options)) return {};
  const has = Object.hasOwn(options, 'include_usage');
  return {
    edits: nestedEdits(
      body,
      'stream_options',
      has ? { replace: { include_usage: 'true' } } : { insert: { include_usage: 'true' } },
    ),
  };
}
