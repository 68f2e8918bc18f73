/** Codes of second factors are good once, in all processes (RFC 6238, section 5.2). */
import { createHmac } from 'node:crypto';
import { APIError } from 'better-auth/api';
import { lte, sql } from 'drizzle-orm';
import type { AuthParts } from './auth.ts';

/** A code is accepted one period of 30 s before and after its own. */
const acceptedMs = 2 * 60_000;

/** Throws where this person has used the code before. */
export async function useCode({ orm, tables, clock, secret }: AuthParts, userId: string, body: unknown): Promise<void> {
  const code = String((body as { code?: unknown }).code).replace(/\D/g, '');
  const id = `code:${createHmac('sha256', secret).update(`${userId} ${code}`).digest('hex')}`;
  const { verification } = tables;
  const now = new Date(clock.now());
  const expiresAt = new Date(clock.now() + acceptedMs);
  const row = { id, identifier: id, value: '', expiresAt, createdAt: now, updatedAt: now };
  const taken = await orm
    .insert(verification)
    .values(row)
    .onConflictDoUpdate({
      target: verification.id,
      set: { expiresAt, updatedAt: now },
      setWhere: lte(verification.expiresAt, now),
    })
    .returning({ id: sql`1` });
  if (taken.length === 0) throw new APIError('UNAUTHORIZED', { code: 'INVALID_CODE', message: 'This code was used.' });
}
