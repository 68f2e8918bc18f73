/** The answer of a turn of generate-content. Pure. */
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';

export const candidateOf = ({ candidates }: JsonObject): JsonObject => listOf(candidates).find(isObject) ?? {};

export function partsOf(answer: JsonObject): JsonObject[] {
  const { content } = candidateOf(answer);
  return isObject(content) ? listOf(content['parts']).filter(isObject) : [];
}

/** What the answer says in a part; undefined for thoughts and all that is no text. */
export function textIn({ text, thought }: JsonObject): string | undefined {
  return typeof text === 'string' && thought !== true ? text : undefined;
}
