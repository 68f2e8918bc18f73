/** Tools that vendors run themselves, and the class of usage that a run of each is charged by. Pure. */
import { defineContextKey, defineService, type Exchange } from '../../../core/contract/contract.ts';
import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import { type PriceBook, versionAt } from '../domain/prices.ts';
import { type Price, priceStandIn, type UsageClass } from '../domain/usage.ts';

/** `tokens`: the client runs it, or it costs the tokens that it adds and no more. undefined: no run of it can be counted. */
export type ToolCharge = UsageClass | 'tokens' | undefined;

/** Provided where the gateway searches the web itself, at `POST /v1/search`. */
export interface OwnSearch {
  /** Whether it does so for this caller now. */
  serves(exchange: Exchange): boolean;
  /** undefined: no engine is set. */
  health(): SearchHealth | undefined;
}

/** What this process has seen of the search engine since it was set. */
export interface SearchHealth {
  /** The name of the engine, or its host where it has none. */
  readonly name: string;
  calls: number;
  failed: number;
  /** Wall-clock milliseconds; undefined: none has failed. */
  lastFailureAt: number | undefined;
}

export const ownSearch = defineService<OwnSearch>('own search');

/** A server of tools that a client's request names by its public address, and that is no server of the gateway. */
export interface NamedServer {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Set for an exchange of the gateway's own with such a server. */
export const namedServer = defineContextKey<NamedServer>('named tool server');

/** Provided where the gateway makes the calls of its tools for any model. */
export const toolRuns = defineService<true>('runs with tools');

type Charges = readonly (readonly [pattern: RegExp, charge: UsageClass | 'tokens'])[];

/** By type, or by member for generate-content: those that the usage meters read. The first that fits holds. */
const charges: Readonly<Record<string, Charges>> = table({
  chat: [
    [/^(function|custom|namespace|computer.*|\w+:datetime)$/, 'tokens'],
    [/^((\w+:)?web_search.*|browser_search|search_engine)$/, 'web_search'],
    [/^web_fetch$/, 'web_fetch'],
    [/^(code_interpreter|code_execution)$/, 'code_execution'],
    [/^(file_search|retrieval)$/, 'file_search'],
    [/^image_generation$/, 'image'],
    [/^(mcp|x_search|builtin_function)$/, 'call'],
  ],
  responses: [
    [/^(function|custom|namespace|local_shell|apply_patch|computer.*|tool_search.*)$/, 'tokens'],
    [/^(programmatic_tool_calling|\w+:datetime)$/, 'tokens'],
    [/^(\w+:)?web_search.*$/, 'web_search'],
    [/^(shell|code_interpreter|code_execution)$/, 'code_execution'],
    [/^(file_search|document_search|collections_search|attachment_search)$/, 'file_search'],
    [/^image_generation$/, 'image'],
    [/^(mcp|x_search)$/, 'call'],
  ],
  messages: [
    [/^(custom|function|bash_.*|text_editor_.*|computer_.*|browser_.*|memory_.*)$/, 'tokens'],
    [/^(tool_search_.*|mcp_.*|advisor_.*)$/, 'tokens'],
    [/^web_search_.*$/, 'web_search'],
    [/^web_fetch_.*$/, 'web_fetch'],
    [/^code_execution_.*$/, 'code_execution'],
  ],
  gemini: [
    [/^(function_?declarations|computer_?use|url_?context|code_?execution|mcp_?servers)$/i, 'tokens'],
    [/^(google_?search|google_?search_?retrieval|enterprise_?web_?search)$/i, 'web_search'],
    [/^(exa_?ai_?search|parallel_?ai_?search)$/i, 'web_search'],
    [/^google_?maps$/i, 'call'],
    [/^(file_?search|retrieval)$/i, 'file_search'],
  ],
});

/** Members by which chat vendors are asked to search, beside tools. */
export const searchMembers = ['web_search_options', 'enable_search', 'search_parameters', 'web_search'];

export function asksSearch(member: unknown): boolean {
  const settings = objectOf(member);
  return settings === undefined ? member === true : settings['mode'] !== 'off' && settings['enable'] !== false;
}

/** Whether a request may have tools that are known here: in some protocols, turns bring more. */
export function mayHaveTools(protocol: string, json: JsonObject): boolean {
  const areInTurns = protocol === 'messages' || protocol === 'responses';
  return (areInTurns || json['tools'] !== undefined) && charges[protocol] !== undefined;
}

/** `name`: its type, or its member for generate-content. */
export function chargeOf(protocol: string, name: string, tool: JsonObject = {}): ToolCharge {
  const charge = charges[protocol]?.find(([pattern]) => pattern.test(name))?.[1];
  if (name === 'builtin_function' && calledName(tool) === '$web_search') return 'web_search';
  // In a container of the vendor, or at the client.
  if (name === 'shell')
    return /^container_/.test(textOf(objectOf(tool['environment'])?.['type']) ?? '') ? charge : 'tokens';
  return charge;
}

function calledName(tool: JsonObject): string | undefined {
  return textOf(objectOf(tool['function'])?.['name']);
}

/** The names of a tool by which it is charged, with their fields: its members for generate-content, else its type. */
export function namesIn(protocol: string, tool: JsonObject, field: string): readonly (readonly [string, string])[] {
  if (protocol === 'gemini')
    return Object.keys(tool).flatMap((name) => (tool[name] === null ? [] : [[name, `${field}.${name}`] as const]));
  const { type } = tool;
  return typeof type === 'string' ? [[type, `${field}.type`]] : [];
}

type ReadTools = (tools: unknown, field: string) => void;

/** Calls `read` with each list of tools of a request, wherever it stands. */
export function readTools(protocol: string, json: JsonObject, read: ReadTools): void {
  read(json['tools'], 'tools');
  if (protocol === 'messages') readAdditions(json['messages'], read);
  if (protocol === 'responses') readItems(json['input'], read);
}

/** Tools that a turn adds. */
function readAdditions(messages: unknown, read: ReadTools): void {
  listOf(messages).forEach((turn, at) => {
    const content = objectOf(turn)?.['content'];
    if (Array.isArray(content)) readBlocks(content, `messages[${at}].content`, read);
  });
}

function readBlocks(blocks: readonly unknown[], field: string, read: ReadTools): void {
  for (let at = 0; at < blocks.length; at++) {
    const block = objectOf(blocks[at]);
    if (block?.['type'] === 'tool_addition') readAddition(block, `${field}[${at}]`, read);
    // What a compaction has kept of earlier turns.
    else if (Array.isArray(block?.['tool_changes']))
      readBlocks(block['tool_changes'], `${field}[${at}].tool_changes`, read);
  }
}

function readAddition({ tool }: JsonObject, field: string, read: ReadTools): void {
  const added = objectOf(tool);
  if (added === undefined || /_reference$/.test(textOf(added['type']) ?? '')) return;
  // The definition may stand in a member of its own.
  const definition = ['definition', 'tool'].find((name) => isObject(added[name]));
  if (definition === undefined) read(added, `${field}.tool`);
  else read(added[definition], `${field}.tool.${definition}`);
}

/** Items of a conversation that bring tools. */
function readItems(input: unknown, read: ReadTools): void {
  const items = listOf(input);
  for (let index = 0; index < items.length; index++) {
    const tools = objectOf(items[index])?.['tools'];
    // What a server lists of its own are descriptions.
    if (Array.isArray(tools) && objectOf(items[index])?.['type'] !== 'mcp_list_tools')
      read(tools, `input[${index}].tools`);
  }
}

/**
 * Whether a vendor's own tool or model, by the class that its runs are counted by, has a price at that time: its own or that of the class that
 * stands in, which may be 0. Pictures may have that of their tokens.
 */
export function isToolPriced(book: PriceBook, at: number, name: UsageClass): boolean {
  const version = versionAt(book, at);
  if (version === undefined) return false;
  const { price } = version.standard;
  const others = name === 'image' ? ['output_image' as const] : [];
  return [name, ...others].some((one) => priceOfClass(price, one) !== undefined);
}

function priceOfClass(price: Price, name: UsageClass): bigint | undefined {
  const own = price[name];
  const standIn = name === 'output_image' ? undefined : priceStandIn[name];
  return own ?? (standIn === undefined ? undefined : priceOfClass(price, standIn));
}
