/** The key of a session for the vendor's prompt cache, where the provider is to get one: a digest that names neither account nor session. */
import { conversation } from '../../common/domain/calls.ts';
import type { MemberChanges } from '../../common/kit/body-edits.ts';
import { type Attempt, accountOf } from '../dependencies.ts';

const member = 'prompt_cache_key';
/** By which clients name a session to the gateway. */
const header = 'x-session-id';
/** Protocols with such a member. */
const withKeys = new Set(['chat', 'responses']);

/** undefined: the provider gets none, its protocol has none, or the session is not known. */
export function sessionKeyOf({ exchange, upstream, target, tools }: Attempt): string | undefined {
  const { sessionKey, dropFields } = target.upstream;
  if (sessionKey !== true || !withKeys.has(upstream.variant?.variantOf ?? upstream.name)) return undefined;
  if (dropFields[target.protocol]?.includes(member) === true) return undefined;
  const session = exchange.find(conversation);
  const name = session?.name ?? exchange.request.headers[header] ?? session?.opening();
  if (name === undefined) return undefined;
  const digest = (part: string) =>
    tools.sealer.marks(`session ${part} ${target.provider} ${name}`, accountOf(exchange))[0];
  return digest('one') + digest('two');
}

/** The changes of a relayed request, with the key; a client's own one stays. */
export function withSessionKey(attempt: Attempt, changes: MemberChanges | undefined): MemberChanges | undefined {
  const { call, json } = attempt.opened;
  const key = call.billable && (json[member] ?? null) === null ? sessionKeyOf(attempt) : undefined;
  return key === undefined ? changes : { ...changes, set: { ...changes?.set, [member]: key } };
}
