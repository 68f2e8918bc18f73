/** What stands behind the gateway and has tools: a server of the protocol, or an HTTP API. */
import type { Progress, Prompt, Resource, ResourceTemplateType, Tool } from '@modelcontextprotocol/client';
import type { Log } from '../../core/contract/contract.ts';
import { isLike } from '../../core/tools/wildcard.ts';
import type { ServerConfig } from './config.ts';
import type { Who } from './connect/owner.ts';

/** A server offers at most so many of a kind; more are left out. */
export const mostListed = 512;
/** A description of a tool that is larger or deeper is left out. */
const largestTool = 64 * 1024;
const deepestTool = 32;

export interface RequestOptions {
  readonly signal: AbortSignal;
  /** The called tool: some of its arguments are headers too. */
  readonly tool?: Tool | undefined;
  readonly onprogress?: ((progress: Progress) => void) | undefined;
}

export type UpstreamMethod = 'tools/call' | 'resources/read' | 'prompts/get' | 'completion/complete';

export interface Listed {
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly templates: readonly ResourceTemplateType[];
  readonly prompts: readonly Prompt[];
}

export interface Upstream {
  readonly name: string;
  readonly settings: ServerConfig;
  /** The newest known list; rejects with Unavailable where none was ever loaded. */
  list<K extends keyof Listed>(kind: K): Promise<Listed[K]>;
  /** Rejects with a ProtocolError, with Unavailable, or with WrongArguments. */
  request(method: UpstreamMethod, params: object, options: RequestOptions): Promise<object>;
  close(): Promise<void>;
  /** The server as the one who asks has connected it; absent: it is the same for all. */
  as?(who: Who): Upstream;
}

/** The tools that the settings choose, in the order of their names. */
export function offered(
  tools: readonly Tool[],
  { name: server, settings }: Pick<Upstream, 'name' | 'settings'>,
  log: Pick<Log, 'warn'>,
): readonly Tool[] {
  const named = tools.filter(({ name }) => settings.tools.some((one) => isLike(one, name)));
  const bounded = named.filter((tool) => isBounded(tool));
  if (bounded.length < named.length)
    log.warn({ server, left_out: named.length - bounded.length }, 'descriptions of tools are too large');
  return bounded.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function isBounded(tool: Tool): boolean {
  return JSON.stringify(tool).length <= largestTool && depthOf(tool, 0) <= deepestTool;
}

function depthOf(value: unknown, depth: number): number {
  if (typeof value !== 'object' || value === null || depth > deepestTool) return depth;
  return Object.values(value).reduce((most: number, member) => Math.max(most, depthOf(member, depth + 1)), depth + 1);
}
