/** What a provider's claims give a person at a sign-in: role and plan. Only a change of the claims changes anything. */
import { and, eq } from 'drizzle-orm';
import type { Clock, Log } from '../../../../core/contract/host-tools.ts';
import type { Orm } from '../../../common/domain/database.ts';
import type { Role } from '../../actor.ts';
import type { OidcProvider } from '../../config.ts';
import type { Audit } from '../../people.ts';
import type { PeopleTables } from '../tables.ts';
import { type Claims, firstMatch } from './claims.ts';

export interface ClaimedParts {
  readonly orm: Orm;
  readonly tables: PeopleTables;
  readonly clock: Clock;
  readonly log: Log;
  readonly audit: Audit;
  /** Puts the account of a person on a plan, unless it has one by another way than from `before`; undefined: the default plan. */
  readonly applyPlan: (personId: string, plan: string | undefined, before: string | undefined) => Promise<void>;
}

interface Arriving {
  readonly personId: string;
  readonly provider: OidcProvider;
  readonly claims: Claims;
  readonly address: string;
}

export async function applyClaims(parts: ClaimedParts, arriving: Arriving): Promise<void> {
  const { orm, tables } = parts;
  const { user } = tables;
  const { provider, claims, personId } = arriving;
  if (provider.roles.length === 0 && provider.plans.length === 0) return;
  const [person] = await orm
    .select({ email: user.email, role: user.role, claimedRole: user.claimedRole, claimedPlan: user.claimedPlan })
    .from(user)
    .where(eq(user.id, personId));
  if (person === undefined) return;
  const byRole = firstMatch(provider.roles, claims);
  const byPlan = firstMatch(provider.plans, claims);
  if (byRole === 'unknown' || byPlan === 'unknown')
    parts.log.warn(
      { provider: provider.id },
      'a provider left claims out of its answer because they are too many: role and plan stay as they are',
    );
  if (byRole !== 'unknown') await applyRole(parts, arriving, person, byRole?.role);
  if (byPlan !== 'unknown') await applyPlan(parts, arriving, person, byPlan?.plan);
}

interface Person {
  readonly email: string;
  readonly role: Role;
  readonly claimedRole: Role | null;
  readonly claimedPlan: string | null;
}

async function applyRole(parts: ClaimedParts, arriving: Arriving, person: Person, claimed: Role | undefined) {
  if (claimed === (person.claimedRole ?? undefined)) return;
  const role = claimed ?? 'client';
  await noted(parts, arriving, person, 'self.role', `${person.role} → ${role}`, async () => {
    if (await setRole(parts, arriving.personId, person.role, claimed)) return 'done';
    const { id: provider } = arriving.provider;
    parts.log.warn({ provider }, 'the last operator keeps the role, which the claims no longer give');
    return 'last_operator';
  });
}

/** false: nothing is changed, as no operator would be left. The operators' rows are locked, so that of two who lose the role one keeps it. */
function setRole(parts: ClaimedParts, personId: string, before: Role, claimed: Role | undefined): Promise<boolean> {
  const { user, session } = parts.tables;
  const role = claimed ?? 'client';
  return parts.orm.transaction(async (inner) => {
    const orm = inner as unknown as Orm;
    if (before === 'operator' && role !== 'operator') {
      const operators = await orm
        .select({ id: user.id })
        .from(user)
        .where(and(eq(user.role, 'operator'), eq(user.blocked, false)))
        .orderBy(user.id)
        .for('update');
      if (operators.every(({ id }) => id === personId)) return false;
    }
    await orm
      .update(user)
      .set({ role, claimedRole: claimed ?? null, updatedAt: now(parts) })
      .where(eq(user.id, personId));
    // What a session was begun for it does not go on with.
    if (role !== before) await orm.delete(session).where(eq(session.userId, personId));
    return true;
  });
}

async function applyPlan(parts: ClaimedParts, arriving: Arriving, person: Person, claimed: string | undefined) {
  const { orm, tables, applyPlan } = parts;
  const before = person.claimedPlan ?? undefined;
  if (claimed === before) return;
  const { personId } = arriving;
  await noted(parts, arriving, person, 'self.plan', claimed ?? '–', async () => {
    await applyPlan(personId, claimed, before);
    await orm
      .update(tables.user)
      .set({ claimedPlan: claimed ?? null, updatedAt: now(parts) })
      .where(eq(tables.user.id, personId));
    return 'done';
  });
}

const now = ({ clock }: ClaimedParts) => new Date(clock.now());

/** In the audit log, as a change that the provider makes. */
async function noted(
  { audit }: ClaimedParts,
  { personId, provider, address }: Arriving,
  { email, role }: Person,
  action: string,
  what: string,
  work: () => Promise<string>,
): Promise<void> {
  const actor = { kind: 'person', id: personId, label: email, role } as const;
  const end = await audit.begin({ actor, action, subject: email, reason: `${provider.id}: ${what}`, address });
  try {
    await end(await work());
  } catch (error) {
    await end('internal');
    throw error;
  }
}
