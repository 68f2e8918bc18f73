/** The tools of the gateway that a run offers to its model. */
import { GatewayError } from '../../core/contract/errors.ts';
import { isObject, type JsonObject, listOf, textOf } from '../../core/json/json.ts';
import { invalid, type Wanted } from './wanted.ts';

export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
  readonly annotations: unknown;
  readonly wanted: Wanted;
}

export class Offered {
  readonly #tools: ReadonlyMap<string, OfferedTool>;
  readonly servers: readonly Wanted[];

  constructor(servers: readonly Wanted[], tools: Iterable<OfferedTool>) {
    this.servers = servers;
    this.#tools = new Map([...tools].map((tool) => [tool.name, tool]));
  }

  get all(): readonly OfferedTool[] {
    return [...this.#tools.values()];
  }

  /** The search of the web, if it is offered. */
  get search(): OfferedTool | undefined {
    return this.all.find(({ wanted }) => wanted.search !== undefined);
  }

  isSearch(name: string): boolean {
    return this.find(name)?.wanted.search !== undefined;
  }

  /** The search of files, if it is offered. */
  get files(): OfferedTool | undefined {
    return this.all.find(({ wanted }) => wanted.files !== undefined);
  }

  isFiles(name: string): boolean {
    return this.find(name)?.wanted.files !== undefined;
  }

  has(name: unknown): boolean {
    return typeof name === 'string' && this.#tools.has(name);
  }

  find(name: string): OfferedTool | undefined {
    return this.#tools.get(name);
  }

  of(server: Wanted): readonly OfferedTool[] {
    return this.all.filter(({ wanted }) => wanted === server);
  }

  hasLabel(label: unknown): boolean {
    return this.servers.some((server) => server.label === label);
  }
}

/** What a server's list of tools has that the request wants. */
export function offeredOf(wanted: Wanted, list: unknown): OfferedTool[] {
  return listOf(list).flatMap((tool): OfferedTool[] => {
    const name = isObject(tool) ? textOf(tool['name']) : undefined;
    if (!isObject(tool) || name === undefined || !wanted.allows(name)) return [];
    const schema = isObject(tool['inputSchema']) ? tool['inputSchema'] : { type: 'object' };
    return [
      {
        name,
        description: textOf(tool['description']) ?? '',
        schema,
        annotations: tool['annotations'] ?? null,
        wanted,
      },
    ];
  });
}

/** Throws where the tools cannot be offered together. `taken`: names of the client's own functions. */
export function offer(
  servers: readonly Wanted[],
  lists: readonly (readonly OfferedTool[])[],
  taken: ReadonlySet<string>,
  { most, searches }: { readonly most: number; readonly searches: readonly OfferedTool[] },
): Offered {
  servers.forEach((server, index) => {
    if (lists[index]!.length > 0) return;
    const message = 'There is no such tool that this key may use.';
    throw new GatewayError('invalid_request', message, { field: server.field, code: 'no_tools', shouldRetry: false });
  });
  const offered = new Offered(servers, [...lists.flat(), ...searches]);
  const tooMany = offered.all.length > most;
  if (tooMany) throw invalid(`A request may offer ${most} tools; these are ${offered.all.length}.`, 'tools');
  const clash = offered.all.find(({ name }) => taken.has(name));
  if (clash !== undefined) throw invalid(`A tool of this gateway has the name "${clash.name}" too.`, 'tools');
  return offered;
}
