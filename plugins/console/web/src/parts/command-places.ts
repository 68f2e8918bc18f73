/** Finds places by a few letters, the best match first. Pure. */
import { accountName } from './account-name.ts';

export interface Place {
  readonly kind: 'page' | 'model' | 'key' | 'account' | 'request' | 'task' | 'batch' | 'action';
  readonly name: string;
  /** Absent: it is done where one is. */
  readonly to?: string;
  readonly search?: Readonly<Record<string, string>>;
  readonly run?: () => void;
  /** The text with which the search goes on. */
  readonly fill?: string;
}
/** Something to do. `asks`: for an account or a request, which is written after its name. */
export interface Action extends Pick<Place, 'name' | 'to' | 'search' | 'run'> {
  readonly asks?: 'account' | 'request';
}
export interface FoundAccount {
  readonly id: string;
  readonly name: string;
  readonly person: { readonly name: string; readonly email: string } | null;
}
export interface Sources {
  readonly pages: readonly { readonly name: string; readonly path: string }[];
  readonly models: readonly string[];
  readonly keys: readonly { readonly id: string; readonly name: string; readonly prefix: string }[];
  /** Already those that fit. */
  readonly accounts: readonly FoundAccount[];
  /** The requests that can be opened by their id. */
  readonly requests: 'operator' | 'own' | 'none';
  /** The same for batches, and whether tasks of one's own can. */
  readonly batches: 'operator' | 'own' | 'none';
  readonly tasks: boolean;
  readonly actions: readonly Action[];
}

const most = 12;
const requestId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const batchId = /^batch_\w+$/i;

export function placesFor(text: string, sources: Sources): readonly Place[] {
  const wanted = text.trim().toLowerCase();
  const asked = askedOf(text, sources.actions);
  if (asked !== undefined) return askedPlaces(asked.action, asked.rest.toLowerCase(), sources);
  if (requestId.test(wanted)) return placesOfId(wanted, sources);
  if (batchId.test(wanted) && sources.batches !== 'none')
    return [{ kind: 'batch', name: text.trim(), to: batchPath[sources.batches], search: { open: text.trim() } }];
  const { pages, models, keys, accounts, actions } = sources;
  const found: (Place & { readonly also?: string })[] = [
    ...pages.map(({ name, path }): Place => ({ kind: 'page', name, to: path })),
    ...models.map((id): Place => ({ kind: 'model', name: id, to: '/models', search: { open: id } })),
    ...keys.map(({ id, name, prefix }) => ({
      ...({ kind: 'key', name: `${name} · ${prefix}…`, to: '/usage', search: { keyId: id } } as const),
      also: prefix,
    })),
    ...actions.map(actionPlace),
  ];
  const named = found
    .map(({ also, ...place }) => ({ place, rank: bestRank([place.name, also ?? ''], wanted) }))
    .filter(({ rank }) => rank !== undefined)
    .toSorted((left, right) => left.rank! - right.rank!)
    .map(({ place }) => place);
  const people = accounts.map((account) => accountPlace(account));
  return [...named.slice(0, most - Math.min(people.length, most / 2)), ...people].slice(0, most);
}

const batchPath = { operator: '/admin/batches', own: '/batches' } as const;

function actionPlace({ asks, name, to, search, run }: Action): Place {
  if (asks !== undefined) return { kind: 'action', name: `${name} …`, fill: `${name} ` };
  return { kind: 'action', name, ...(to === undefined ? {} : { to }), search: search ?? {}, ...(run && { run }) };
}

/** The action that the text begins with, and what is written after its name. */
export function askedOf(text: string, actions: readonly Action[]) {
  const action = actions.find(
    ({ asks, name }) => asks !== undefined && text.toLowerCase().startsWith(`${name.toLowerCase()} `),
  );
  return action === undefined ? undefined : { action, rest: text.slice(action.name.length + 1).trim() };
}

function askedPlaces({ asks, name, search = {} }: Action, rest: string, { accounts }: Sources): readonly Place[] {
  if (asks === 'account')
    return accounts.map((account) => {
      const place = accountPlace(account);
      return { ...place, kind: 'action', name: `${name}: ${place.name}`, search };
    });
  if (!requestId.test(rest)) return [];
  return [{ kind: 'action', name: `${name}: ${rest}`, to: `/admin/requests/${rest}`, search }];
}

function accountPlace({ id, name, person }: FoundAccount): Place {
  return {
    kind: 'account',
    name: person === null ? name : `${accountName({ name, person })} · ${person.email}`,
    to: `/admin/accounts/${encodeURIComponent(id)}`,
  };
}

/** An id names a request or a task; of a request there is more to do. */
function placesOfId(id: string, { requests, tasks, actions }: Sources): readonly Place[] {
  const places: Place[] = [];
  if (requests === 'own') places.push({ kind: 'request', name: id, to: '/usage', search: { open: id } });
  if (requests === 'operator') places.push({ kind: 'request', name: id, to: `/admin/requests/${id}` });
  for (const { asks, name, search = {} } of actions)
    if (asks === 'request')
      places.push({ kind: 'action', name: `${name}: ${id}`, to: `/admin/requests/${id}`, search });
  if (tasks) places.push({ kind: 'task', name: id, to: '/tasks', search: { open: id } });
  return places;
}

function bestRank(names: readonly string[], wanted: string): number | undefined {
  const ranks = names.flatMap((name) => (name === '' ? [] : (rankOf(name.toLowerCase(), wanted) ?? [])));
  return ranks.length === 0 ? undefined : Math.min(...ranks);
}

/** 0: begins with it, 1: one of its words does, 2: it is somewhere inside. undefined: it is not there. */
function rankOf(name: string, wanted: string): number | undefined {
  if (name.startsWith(wanted)) return 0;
  if (name.split(/[\s\-./]+/).some((word) => word.startsWith(wanted))) return 1;
  return name.includes(wanted) ? 2 : undefined;
}
