/** Secrets that are handed out once and kept as hashes, and those that sign cookies. */
import { hash } from 'node:crypto';
import { eq } from 'drizzle-orm';
import type { Random } from '../../../core/contract/host-tools.ts';
import type { RotatedSecret } from '../../../core/contract/secret.ts';
import type { Database, Orm } from '../../common/domain/database.ts';
import { type ConsoleTables, consoleTables, peopleTables } from './tables.ts';

/** 256 random bits cannot be guessed, so a plain hash is enough. */
export function makeSecret(random: Random, prefix: string): string {
  return prefix + random.bytes(32).toString('base64url');
}

export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

const madeName = 'secret';
export type Secrets = readonly [string, ...string[]];

/**
 * What cookies are signed and second factors encrypted with, the first what is new: the configured ones, and the one that was made once for
 * all processes while there were none.
 */
export async function loadSecrets(
  orm: Orm,
  { settings }: ConsoleTables,
  configured: readonly string[],
  random: Random,
): Promise<Secrets> {
  if (configured.length === 0) {
    const value = random.bytes(48).toString('base64url');
    await orm.insert(settings).values({ name: madeName, value }).onConflictDoNothing();
  }
  const rows = await orm.select({ value: settings.value }).from(settings).where(eq(settings.name, madeName));
  return [...new Set([...configured, ...rows.map(({ value }) => value)])] as unknown as Secrets;
}

/**
 * As better-auth takes secrets, with numbers by what they are, so that each keeps its number in every list. `secret` reads what was encrypted
 * before there were numbers.
 */
export function numbered(secrets: Secrets) {
  const withNumbers = secrets.map((value) => ({
    version: Number.parseInt(hash('sha256', value).slice(0, 7), 16),
    value,
  }));
  return { secrets: withNumbers, secret: secrets.at(-1)! };
}

/** Second factors and kept configurations are encrypted again; cookies and links end by themselves. */
export function rotatedPeople(
  { orm, schema }: Pick<Database, 'orm' | 'schema'>,
  configured: readonly string[],
  random: Random,
  sealAgain: (secrets: Secrets) => Promise<{ readonly done: number; readonly left: number }>,
): RotatedSecret {
  const tables = consoleTables(schema);
  const { twoFactor } = peopleTables(schema);
  return {
    setting: 'console.secret',
    uses: 'cookies, links in mails, seeds and backup codes of second factors, secrets of providers of accounts, kept configurations',
    secrets: configured.length,
    async rotate(givesUp) {
      const secrets = await loadSecrets(orm, tables, configured, random);
      const texts = await sealAgain(secrets);
      const rows = await orm.select().from(twoFactor);
      let left = texts.left;
      for (const { id, secret, backupCodes } of rows) {
        const sealed = await Promise.all([secret, backupCodes].map((text) => encryptedAgain(text, secrets)));
        const [newSecret, newCodes] = sealed;
        if (newSecret === undefined || newCodes === undefined) left += 1;
        else await orm.update(twoFactor).set({ secret: newSecret, backupCodes: newCodes }).where(eq(twoFactor.id, id));
      }
      if (left === 0 && configured.length > 0 && givesUp)
        await orm.delete(tables.settings).where(eq(tables.settings.name, madeName));
      return {
        done: texts.done + texts.left + rows.length - left,
        left,
        advice:
          left === 0
            ? 'the others can be removed when sessions from before have ended (console.session)'
            : 'these second factors and kept configurations need a secret that is not in the list: put it back at its end',
      };
    },
  };
}

/** With the first secret; undefined: with none of them it can be read. */
async function encryptedAgain(text: string, secrets: Secrets): Promise<string | undefined> {
  const { symmetricDecrypt, symmetricEncrypt } = await import('better-auth/crypto');
  const { secrets: list } = numbered(secrets);
  const keys = new Map(list.map(({ version, value }) => [version, value]));
  const currentVersion = list[0]!.version;
  if (text.startsWith(`$ba$${currentVersion}$`)) return text;
  for (const legacySecret of secrets) {
    try {
      const data = await symmetricDecrypt({ key: { keys, currentVersion, legacySecret }, data: text });
      return await symmetricEncrypt({ key: { keys, currentVersion }, data });
    } catch {
      // The next one.
    }
  }
  return undefined;
}
