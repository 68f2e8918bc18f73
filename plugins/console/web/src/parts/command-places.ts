/** Finds places by a few letters, the best match first. Pure. */

export interface Place {
  readonly kind: 'page' | 'model' | 'key' | 'account' | 'request';
  readonly name: string;
  readonly to: string;
  readonly search: Readonly<Record<string, string>>;
}
export interface FoundAccount {
  readonly id: string;
  readonly name: string;
  readonly person: { readonly name: string; readonly email: string } | null;
}
export interface Sources {
  readonly pages: readonly { readonly name: string; readonly path: string }[];
  readonly models: readonly string[];
  readonly keys: readonly { readonly id: string; readonly name: string }[];
  /** Already those that fit. */
  readonly accounts: readonly FoundAccount[];
  /** The requests that can be opened by their id. */
  readonly requests: 'operator' | 'own' | 'none';
}

const most = 12;
const requestId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function placesFor(text: string, sources: Sources): readonly Place[] {
  const wanted = text.trim().toLowerCase();
  const { pages, models, keys, accounts, requests } = sources;
  if (requestId.test(wanted) && requests !== 'none') return [requestPlace(wanted, requests)];
  const found: Place[] = [
    ...pages.map(({ name, path }): Place => ({ kind: 'page', name, to: path, search: {} })),
    ...models.map((id): Place => ({ kind: 'model', name: id, to: '/models', search: { open: id } })),
    ...keys.map(({ id, name }): Place => ({ kind: 'key', name, to: '/usage', search: { keyId: id } })),
  ];
  const named = found
    .map((place) => ({ place, rank: rankOf(place.name.toLowerCase(), wanted) }))
    .filter(({ rank }) => rank !== undefined)
    .toSorted((left, right) => left.rank! - right.rank!)
    .map(({ place }) => place);
  const people = accounts.map(
    ({ id, name, person }): Place => ({
      kind: 'account',
      name: person === null ? name : `${person.name} · ${person.email}`,
      to: `/admin/accounts/${encodeURIComponent(id)}`,
      search: {},
    }),
  );
  return [...named.slice(0, most - Math.min(people.length, most / 2)), ...people].slice(0, most);
}

function requestPlace(id: string, owner: 'operator' | 'own'): Place {
  if (owner === 'own') return { kind: 'request', name: id, to: '/usage', search: { open: id } };
  return { kind: 'request', name: id, to: `/admin/requests/${id}`, search: {} };
}

/** 0: begins with it, 1: one of its words does, 2: it is somewhere inside. undefined: it is not there. */
function rankOf(name: string, wanted: string): number | undefined {
  if (name.startsWith(wanted)) return 0;
  if (name.split(/[\s\-./]+/).some((word) => word.startsWith(wanted))) return 1;
  return name.includes(wanted) ? 2 : undefined;
}
