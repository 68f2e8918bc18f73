/** The secrets of a gateway as its providers and its operators use them: looked up, listed without texts, set and removed. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { RotatedSecret } from '../../../core/contract/secret.ts';
import type { VendorSecrets, VendorSecretView } from '../../common/domain/admin/vendor-secrets.ts';
import { keyVariable } from '../../common/kit/secrets/key-source.ts';
import { fingerprintOf } from '../../common/kit/secrets/sealing.ts';
import { keyText, type ProvidersConfig } from '../config.ts';
import { type SecretNames, writeNames } from './names-file.ts';
import { namedIn, nameProblem, referenceIn } from './reference-text.ts';
import { namesIn, type SecretLookup } from './references.ts';
import type { SecretStore, StoredSecret } from './store.ts';

/** Before the database is opened: names alone, and no texts but the references themselves. */
export function lookupByNames(names: SecretNames | undefined): SecretLookup {
  if (names === undefined) return { texts: () => [], state: () => 'missing', isUnknown: true };
  return {
    texts: (name) => (names.get(name) === true ? [`secret:${name}`] : []),
    state: (name) => stateOf(names.has(name), names.get(name) === true),
  };
}

export function lookupIn(store: SecretStore): SecretLookup {
  return {
    texts: (name) => store.textsOf(name),
    state: (name) => stateOf(store.stored.has(name), store.textsOf(name).length > 0),
  };
}

const stateOf = (isStored: boolean, isUsable: boolean) =>
  isUsable ? 'stored' : isStored ? 'unreadable' : ('missing' as const);

export function namesOf(store: SecretStore): SecretNames {
  return new Map([...store.stored.keys()].map((name) => [name, store.textsOf(name).length > 0]));
}

/** Writes the names for `check`, where they have changed. */
export class NamesWriter {
  readonly #directory: string;
  readonly #schema: string;
  #written = '';

  constructor(directory: string, schema: string) {
    this.#directory = directory;
    this.#schema = schema;
  }

  write(names: SecretNames): void {
    const text = JSON.stringify([...names]);
    if (text === this.#written) return;
    writeNames(this.#directory, this.#schema, names);
    this.#written = text;
  }
}

interface SecretParts {
  /** Absent where the gateway has no database, and for `check`. */
  readonly store?: SecretStore;
  readonly lookup: SecretLookup;
  readonly config: () => ProvidersConfig;
  /** The running files. */
  readonly texts: () => readonly { readonly path: string; readonly text: string }[];
}

export function openVendorSecrets({ store, lookup, config, texts }: SecretParts): VendorSecrets {
  const needed = () => {
    if (store !== undefined) return store;
    throw new GatewayError(
      'conflict',
      'This gateway has no database to keep secrets in: add "storage" to its plugins.',
    );
  };
  const users = () => {
    const found = Object.entries(config()).flatMap(([provider, section]) =>
      namesIn(section).map((name) => ({ name, provider })),
    );
    for (const { path, text } of texts()) found.push(...namedIn(text).map((name) => ({ name, provider: path })));
    return Map.groupBy(found, ({ name }) => name);
  };
  const list = (): VendorSecretView[] => {
    const by = users();
    const names = [...new Set([...(store?.stored.keys() ?? []), ...by.keys()])].toSorted();
    return names.map((name) => {
      const usedBy = (by.get(name) ?? []).map(({ provider }) => provider);
      return viewOf(name, store?.stored.get(name) ?? [], lookup.state(name), usedBy);
    });
  };
  return {
    list,
    async set(name, text, by, overlap, isNew = false) {
      await needed().set(checkedName(name), checkedText(text), by, overlap, isNew);
      return list().find((view) => view.name === name)!;
    },
    async remove(name) {
      const by = users().get(name) ?? [];
      // What cannot be read is of no use to them, and may be in the way of new ones.
      if (by.length > 0 && lookup.state(name) === 'stored')
        throw new GatewayError('conflict', inUse(name, by), { field: 'name', code: 'secret_in_use' });
      await needed().remove(name);
    },
  };
}

function inUse(name: string, by: readonly { readonly provider: string }[]): string {
  const settings = [...new Set(by.map(({ provider }) => provider))].join(', ');
  return `The settings of ${settings} name "secret:${name}": write another key there first, or an empty one, which leaves the vendor out.`;
}

function viewOf(
  name: string,
  versions: readonly StoredSecret[],
  state: VendorSecretView['state'],
  usedBy: readonly string[],
): VendorSecretView {
  const [newest, ...older] = versions;
  return {
    name,
    state,
    ...(newest === undefined ? { lastFour: '', fingerprint: '' } : marksOf(newest)),
    setAt: newest?.setAt,
    setBy: newest?.setBy,
    usedBy,
    older: older.map((one) => ({ ...marksOf(one), until: one.until, untilWorked: one.untilWorked })),
  };
}

/** The last four characters of a shorter text would say too much. */
const shortestWithEnd = 16;

function marksOf({ opened }: StoredSecret) {
  if (opened === undefined) return { lastFour: '', fingerprint: '' };
  const { text, key } = opened;
  const isFile = text.startsWith('{');
  return {
    lastFour: text.length < shortestWithEnd || isFile ? '' : text.slice(-4),
    fingerprint: fingerprintOf(key, text),
  };
}

function checkedName(name: string): string {
  const problem = nameProblem(name);
  if (problem !== undefined)
    throw new GatewayError('invalid_request', `The name ${problem}.`, { field: 'name', code: 'secret_name' });
  return name;
}

/** The messages of the schema name no text. */
function checkedText(text: string): string {
  const parsed = keyText.safeParse(text.trim());
  const problem = !parsed.success
    ? (parsed.error.issues[0]?.message ?? 'is no key')
    : parsed.data === ''
      ? 'it is empty'
      : referenceIn(parsed.data) === undefined
        ? undefined
        : 'it must be the key itself, not the name of a secret';
  if (problem === undefined) return parsed.data!;
  throw new GatewayError('invalid_request', `The key cannot be stored: ${problem}.`, {
    field: 'value',
    code: 'secret_value',
  });
}

export function rotatedSecrets(store: SecretStore, keys: () => number): RotatedSecret[] {
  return [
    {
      setting: keyVariable,
      uses: 'stored keys of vendors',
      secrets: keys(),
      async rotate(givesUp) {
        const { done, left } = await store.reseal(givesUp);
        const advice = left === 0 ? 'the others can be removed' : 'the others are still needed';
        return { done, left, advice };
      },
    },
  ];
}
