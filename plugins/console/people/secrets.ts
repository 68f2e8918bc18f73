/** Secrets that are handed out once and kept as hashes, and the one that signs cookies. */
import { hash } from 'node:crypto';
import { eq } from 'drizzle-orm';
import type { Random } from '../../../core/contract/host-tools.ts';
import type { Orm } from '../../common/domain/database.ts';
import type { HouseTables } from './tables.ts';

/** 256 random bits cannot be guessed, so a plain hash is enough. */
export function makeSecret(random: Random, prefix: string): string {
  return prefix + random.bytes(32).toString('base64url');
}

export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** What cookies are signed and second factors encrypted with: the configured one, or one that is made once for all processes. */
export async function loadSecret(
  orm: Orm,
  { settings }: HouseTables,
  configured: string,
  random: Random,
): Promise<string> {
  if (configured !== '') return configured;
  const name = 'secret';
  const value = random.bytes(48).toString('base64url');
  await orm.insert(settings).values({ name, value }).onConflictDoNothing();
  const [row] = await orm.select({ value: settings.value }).from(settings).where(eq(settings.name, name));
  return row!.value;
}
