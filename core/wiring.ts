/** Whether the plugins of a list fit together in that order. Each misfit is one sentence that names the fix. Pure. */
import { openingIndex, type Seat, seatsOf } from './chain.ts';
import { type Endpoint, type Fact, type Plugin, type Service, upstreamRequest } from './contract.ts';

type Owners = (wanted: Service<unknown> | Fact<unknown>) => readonly string[];

/** Services, before setup. `owners` tells which plugins of the house could provide what is missing. */
export function checkServices(plugins: readonly Plugin[], owners: Owners): string[] {
  const sentences = plugins.flatMap((plugin, index) =>
    plugins.slice(0, index).some((earlier) => earlier.name === plugin.name)
      ? [`"${plugin.name}" stands twice in the list: remove one.`]
      : [],
  );
  plugins.forEach((plugin, index) => {
    for (const service of plugin.needs ?? []) {
      if (plugins.slice(0, index).some((other) => other.provides?.includes(service))) continue;
      const later = plugins.slice(index + 1).find((other) => other.provides?.includes(service));
      sentences.push(
        later === undefined
          ? `"${plugin.name}" needs the service "${service.name}", which no plugin of the list provides: ${addAbove(owners(service), plugin.name)}.`
          : `"${plugin.name}" needs the service "${service.name}", but "${later.name}", which provides it, stands below: move "${later.name}" above "${plugin.name}".`,
      );
    }
  });
  return [...sentences, ...rivals(plugins)];
}

function rivals(plugins: readonly Plugin[]): string[] {
  const providers = new Map<Service<unknown>, string>();
  const sentences: string[] = [];
  for (const plugin of plugins) {
    for (const service of plugin.provides ?? []) {
      const first = providers.get(service);
      if (first !== undefined)
        sentences.push(`"${first}" and "${plugin.name}" both provide the service "${service.name}": keep one.`);
      providers.set(service, plugin.name);
    }
  }
  return sentences;
}

/** Facts, for each endpoint's real chain, after setup. */
export function checkFacts(endpoints: readonly Endpoint[], seats: readonly Seat[], owners: Owners): string[] {
  const sentences = new Set<string>(clashes(seats));
  for (const endpoint of endpoints) {
    for (const sentence of checkEndpoint(endpoint, seatsOf(endpoint, seats), owners)) sentences.add(sentence);
  }
  return [...sentences];
}

function checkEndpoint(endpoint: Endpoint, seats: readonly Seat[], owners: Owners): string[] {
  const place = `On ${endpoint.method} ${endpoint.path} `;
  const sentences: string[] = [];
  const opening = openingIndex(endpoint, seats);
  const written = new Set<Fact<unknown>>();
  seats.forEach(({ plugin }, index) => {
    if (index === opening) {
      sentences.push(...openedTooEarly(endpoint, seats, index, written));
      for (const fact of endpoint.states ?? []) written.add(fact);
    }
    for (const fact of plugin.reads ?? []) {
      if (written.has(fact)) continue;
      const later = writerBelow(seats, index, fact);
      sentences.push(
        `${place}"${plugin.name}" reads the fact "${fact.name}", ` +
          (later === undefined
            ? `which nobody states: ${addAbove(owners(fact), plugin.name)}.`
            : movesUp(later, plugin.name)),
      );
    }
    for (const fact of plugin.finds ?? []) {
      // Also where another has stated it: the last word would come too late.
      const later = writerBelow(seats, index, fact);
      if (later !== undefined)
        sentences.push(`${place}"${plugin.name}" uses the fact "${fact.name}", ${movesUp(later, plugin.name)}`);
    }
    for (const fact of plugin.writes ?? []) written.add(fact);
  });
  for (const { plugin } of seats) {
    for (const fact of plugin.awaits ?? []) {
      if (written.has(fact) || endpoint.states?.includes(fact)) continue;
      sentences.push(
        `${place}"${plugin.name}" waits for the fact "${fact.name}", which nobody states: ${addAbove(owners(fact), undefined)}.`,
      );
    }
  }
  if (endpoint.handle === undefined && !written.has(upstreamRequest) && !endpoint.states?.includes(upstreamRequest)) {
    sentences.push(`${place}nobody states where to forward to: ${addAbove(owners(upstreamRequest), undefined)}.`);
  }
  return sentences;
}

/** `open` would run without a fact that it uses, because whoever states that comes later. */
function openedTooEarly(
  endpoint: Endpoint,
  seats: readonly Seat[],
  opening: number,
  written: ReadonlySet<Fact<unknown>>,
): string[] {
  const reader = seats[opening]!.plugin.name;
  return (endpoint.finds ?? []).flatMap((fact) => {
    const later = written.has(fact) ? undefined : writerFrom(seats, opening, fact);
    if (later === undefined) return [];
    const fix = later === reader ? 'that cannot be' : `move "${later}" above "${reader}"`;
    return [
      `On ${endpoint.method} ${endpoint.path} the request is opened before "${reader}" and uses the fact "${fact.name}", which "${later}" states after that: ${fix}.`,
    ];
  });
}

function writerFrom(seats: readonly Seat[], from: number, fact: Fact<unknown>): string | undefined {
  return seats.slice(from).find(({ plugin }) => plugin.writes?.includes(fact))?.plugin.name;
}

function writerBelow(seats: readonly Seat[], index: number, fact: Fact<unknown>): string | undefined {
  return writerFrom(seats, index + 1, fact);
}

function movesUp(later: string, reader: string): string {
  return `but "${later}", which states it, stands below: move "${later}" above "${reader}".`;
}

/** Two endpoints at one address, whoever brought them. A WebSocket's address may be that of a page. */
function clashes(seats: readonly Seat[]): string[] {
  const owners = new Map<string, string>();
  const sentences: string[] = [];
  for (const { plugin, part } of seats) {
    const addresses = [
      ...(part.endpoints ?? []).map(({ method, path }) => `${method} ${path}`),
      ...(part.sockets ?? []).map(({ path }) => `WebSockets at ${path}`),
    ];
    for (const address of addresses) {
      const first = owners.get(address);
      if (first !== undefined)
        sentences.push(`"${first}" and "${plugin.name}" both answer ${address}: remove one of them.`);
      owners.set(address, plugin.name);
    }
  }
  return sentences;
}

function addAbove(candidates: readonly string[], plugin: string | undefined): string {
  const named =
    candidates.length === 0 ? 'add a plugin that does' : `add ${candidates.map((name) => `"${name}"`).join(' or ')}`;
  return plugin === undefined ? `${named} to the list` : `${named} above "${plugin}"`;
}
