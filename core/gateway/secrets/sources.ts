/** Asks plugins' sources for the secrets that a gateway file names. */

import { maskSecrets, type SecretSource } from '../../contract/secret.ts';
import { didYouMean } from '../../tools/near-names.ts';
import { ConfigError, type GatewayFile } from '../config.ts';
import { type FoundSecrets, fileSource, type WantedSecret } from './filling.ts';

const longestReadMs = 10_000;
const mostLength = 64 * 2 ** 10;

/** The file with the secrets of sources filled in. `read`: reads it with what they have given. Throws a ConfigError. */
export async function withSecrets(
  file: GatewayFile,
  sources: readonly SecretSource[],
  read: (found: FoundSecrets) => GatewayFile,
): Promise<GatewayFile> {
  const { wanted, problems } = file.yaml;
  if (wanted.size === 0) return file;
  const found = new Map<string, string | undefined>();
  await Promise.all(
    [...wanted].map(async ([key, secret]) => {
      try {
        found.set(key, await valueFrom(secret, sources));
      } catch (error) {
        const { source, reference, places } = secret;
        const why = maskSecrets(error instanceof Error ? error.message : String(error));
        for (const place of places)
          place.refuse(`${place.setting}: the secret ${source}:${reference} cannot be had: ${why}`);
      }
    }),
  );
  if (problems.length > 0) throw new ConfigError(problems);
  return read(found);
}

async function valueFrom({ source: name, reference }: WantedSecret, sources: readonly SecretSource[]) {
  const source = sources.find((one) => one.name === name);
  if (source === undefined) {
    const names = [fileSource, ...sources.map((one) => one.name)];
    throw new Error(`there is no source "${name}"${didYouMean(name, names) || `; known are ${names.join(', ')}`}`);
  }
  const signal = AbortSignal.timeout(longestReadMs);
  const late = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('the source did not answer within 10 s')), { once: true });
  });
  const text: unknown = await Promise.race([source.read(reference, signal), late]);
  if (text === undefined || (typeof text === 'string' && text.length <= mostLength))
    return text === '' ? undefined : text;
  throw new Error(typeof text === 'string' ? 'it has more than 64 KB' : 'the source gave no text');
}

/** Faults in the names of sources. */
export function sourceProblems(sources: readonly SecretSource[]): string[] {
  return sources
    .filter(({ name }) => name === fileSource || !/^[a-z][a-z0-9-]*$/.test(name))
    .map(
      ({ name }) =>
        `the source of secrets "${name}" needs another name: small letters, digits and "-", and not "${fileSource}"`,
    );
}
