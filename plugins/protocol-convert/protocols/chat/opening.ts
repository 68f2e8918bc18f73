/** Opening chunks of the chat and completions protocols. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../../core/json/json.ts';
import { isBlank, isBlankBut, openingWhere } from '../../../common/wire/opening-frames.ts';

/** A role alone, or findings about the prompt before any choice. */
export const isOpeningChunk = openingWhere(({ choices, usage, error }) => {
  const counts = objectOf(usage)?.['completion_tokens'];
  if (!Array.isArray(choices) || Number(counts ?? 0) > 0 || !isBlank(error)) return false;
  return listOf(choices).every((choice) => isObject(choice) && isEmpty(choice));
});

function isEmpty({ finish_reason: reason, delta, text, message }: JsonObject): boolean {
  if (!isBlank(reason) || !isBlank(text) || message !== undefined) return false;
  return isObject(delta) ? isBlankBut(delta, 'role') : text === '';
}
