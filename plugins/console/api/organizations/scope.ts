/** What of an account somebody sees: all of it, or what their own keys have called. */
import type { KeySet } from '../../../common/domain/admin/accounts.ts';
import { accountAdmin } from '../../services.ts';
import { actorOf, type ConsoleServices, has, membershipOf, need, type RequestContext } from '../routing/router.ts';

export interface Scope {
  /** undefined: of all accounts. */
  readonly accountId: string | undefined;
  /** undefined: of all keys, and without one. */
  readonly keys?: KeySet | undefined;
}

/** The account that the actor has chosen, as far as their role reaches. */
export async function scopeOf(
  services: ConsoleServices,
  c: RequestContext,
): Promise<Scope & { readonly accountId: string }> {
  const { accountId } = await membershipOf(services, c);
  if (await has(services, c, 'allUsage')) return { accountId };
  return { accountId, keys: { ids: await need(services, accountAdmin).keyIdsOf(accountId, actorOf(c).id) } };
}

/** Whether a call by this key is in the scope. */
export const isIn = ({ keys }: Scope, keyId: string | undefined): boolean =>
  keys === undefined || (keyId !== undefined && keys.ids.includes(keyId) !== (keys.not === true));
