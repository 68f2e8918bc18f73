/** Requests for a summary instead of an answer: `compaction` of the messages protocol. Pure. */
import type { JsonObject } from '../../../../../core/json/json.ts';
import { hasEffect, notTranslatable } from '../../../../common/canonical/dropped-parameters.ts';

/**
 * Throws invalid_request for a request with `compaction` that would not reach a vendor with this feature. Any other vendor
 * would continue the conversation, and that answer would look like a success.
 */
export function refuseCompaction(json: JsonObject, isSupported: boolean): void {
  if (isSupported || !hasEffect(json['compaction'])) return;
  const message = 'The field "compaction" cannot be honoured: this model does not summarise conversations by it.';
  throw notTranslatable(message, 'compaction');
}
