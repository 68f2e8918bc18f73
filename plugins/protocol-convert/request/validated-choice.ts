/** The tool choice `validated` of chat and responses, which some clients send to every model with a name of Gemini's. Pure. */
import type { JsonObject } from '../../../core/json/json.ts';
import type { MemberChanges } from '../../common/kit/body-edits.ts';

/** The model may call tools, and a call must follow the tool's schema; only generate-content upstreams have such a mode. */
export const validatedChoice = 'validated';

/** Changes of a relayed request: other upstreams refuse the value, and `auto` is the same choice without the promise. */
export function relayedChoice(json: JsonObject, members: MemberChanges | undefined): MemberChanges | undefined {
  if (json['tool_choice'] !== validatedChoice) return members;
  return { ...members, set: { tool_choice: 'auto', ...members?.set } };
}
