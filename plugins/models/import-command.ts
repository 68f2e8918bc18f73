/**
 * `prices import FILE`: imports prices of a public list for the offered models; shows a diff and writes a file to
 * include.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import type { Command, CommandResult } from '../../core/contract/commands.ts';
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { type PriceBook, type PriceVersion, versionAt } from '../common/domain/prices.ts';
import { type ModelConfig, type ModelsConfig, missingClasses } from './config.ts';
import { priceSchema } from './price-config.ts';
import { diffPrices } from './price-diff.ts';
import { type ListEntry, parsePriceList, readEntry, variantWords, type WrittenPrice } from './price-list.ts';

/** Prefix of an imported price's source; prices without it were written by hand. */
const mark = 'imported: ';
const header = '# Written by `gateway prices import`; run it again rather than edit.';

type Values = Parameters<Command['run']>[0];

/** A price in the list for one model. `new`: the model has no price yet. `byHand`: a person wrote its price. */
interface Finding {
  readonly model: string;
  /** Its name in the list. */
  readonly entry: string;
  readonly state: 'same' | 'new' | 'imported' | 'byHand';
  readonly changes: readonly string[];
  readonly leftOut: readonly string[];
  readonly price: WrittenPrice;
  readonly source: string;
}

/** A model without a price in the list, and why. */
interface Miss {
  readonly model: string;
  readonly why: string;
}

export function importCommand(host: Host, config: ModelsConfig): Command {
  return {
    name: 'prices import',
    summary: 'Shows what a public price list (JSON) would change; with --to writes it as a YAML file to include',
    arguments: ['<file>'],
    options: {
      '--to <file>': 'Write prices of models that have none, or have imported ones, to this YAML file',
      '--write': 'With --to: also prices that replace hand-written ones',
      '--models <names>': 'Only these models, separated by commas',
    },
    run: (values) => importPrices(host, config, values),
  };
}

async function importPrices(host: Host, config: ModelsConfig, values: Values): Promise<CommandResult> {
  const file = String(values['file']);
  const list = await readList(file);
  const findings: Finding[] = [];
  const misses: Miss[] = [];
  for (const [id, model] of chosenModels(config, values['models'])) {
    const found = findPrice(id, model, list, host.clock.now(), file);
    if (!('why' in found)) findings.push(found);
    else misses.push(isImported(model) ? { ...found, why: `${found.why}; the price imported before stays` } : found);
  }
  const { to } = values;
  const overwrites = values['write'] === true;
  const wanted = findings.filter(
    ({ state }) => state === 'new' || state === 'imported' || (overwrites && state === 'byHand'),
  );
  // Unchanged imported prices are written too, as the file need not be the one that they came from.
  const kept = findings.filter(({ model, state }) => state === 'same' && isImported(config[model]));
  if (typeof to === 'string' && wanted.length > 0) await writePrices(to, [...wanted, ...kept], config);
  const json = { file, findings, misses, written: typeof to === 'string' ? wanted.map(({ model }) => model) : [] };
  return { json, text: [...describe(findings, misses), closingText(to, wanted, findings, overwrites)].join('\n') };
}

export async function readList(file: string): Promise<ReadonlyMap<string, ListEntry>> {
  try {
    return parsePriceList(await readFile(file, 'utf8'));
  } catch (error) {
    throw new GatewayError('invalid_request', `${file} is no price list: ${(error as Error).message}.`, {
      field: 'file',
    });
  }
}

function chosenModels(config: ModelsConfig, names: unknown): [string, ModelConfig][] {
  const all = Object.entries(config);
  if (typeof names !== 'string') return all;
  const wanted = names.split(',').map((name) => name.trim());
  const unknown = wanted.find((name) => !Object.hasOwn(config, name));
  if (unknown !== undefined)
    throw new GatewayError('not_found', `There is no model "${unknown}".`, { field: 'models' });
  return all.filter(([id]) => wanted.includes(id));
}

/** The list's price for one model. */
export function findPrice(
  id: string,
  model: ModelConfig,
  list: ReadonlyMap<string, ListEntry>,
  at: number,
  file: string,
): Finding | Miss {
  const name = namesOf(id, model).find((one) => list.has(one));
  if (name === undefined) return { model: id, why: 'not in the list' };
  const entry = list.get(name)!;
  try {
    const { price, leftOut } = readEntry(entry, variantsOf(name, list));
    const book = checked(price, model);
    const source = `${mark}${typeof entry['source'] === 'string' ? escapeVariables(entry['source']) : file}`;
    const before = model.price === undefined ? undefined : versionAt(model.price, at);
    const changes = diffPrices(before, book[0]!);
    return { model: id, entry: name, state: stateOf(model, before, changes), changes, leftOut, price, source };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { model: id, why: error.message };
  }
}

const longestSource = 500;

/** The list is external: its text must not refer to environment variables when the file is read. */
function escapeVariables(words: string): string {
  const line = words.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, longestSource);
  return line.replaceAll('${', '$ {');
}

/** The exact names that the list may have for the model, the provider's own first; never a part of a name. */
function namesOf(id: string, { targets, aliases }: ModelConfig): string[] {
  const served = targets.flatMap(({ provider, model = id }) => [`${provider}/${model}`, model]);
  return [...new Set([...served, id, ...aliases])];
}

function variantsOf(name: string, list: ReadonlyMap<string, ListEntry>): Map<string, ListEntry> {
  const model = name.slice(name.lastIndexOf('/') + 1);
  const found = new Map<string, ListEntry>();
  for (const [other, entry] of list) {
    const words = variantWords(other, model);
    if (words !== undefined) found.set(words, entry);
  }
  return found;
}

/** Parses the price as the configuration does. Throws a RangeError if that refuses it, or if it is free. */
function checked(price: WrittenPrice, model: ModelConfig): PriceBook {
  const parsed = priceSchema.safeParse(price);
  if (!parsed.success) throw new RangeError(parsed.error.issues[0]!.message);
  const missing = missingClasses(parsed.data, model.kind);
  if (missing !== undefined) throw new RangeError(`the list names no price for ${missing.join(' or ')}`);
  // Lists have zeros for unknown prices, or for subscriptions. Only the operator may declare a model free.
  if (isFree(parsed.data)) throw new RangeError('the list has nothing but zeros; write "price: free" if it is free');
  return parsed.data;
}

function isFree(book: PriceBook): boolean {
  return book.every((version) => version.all().every(({ price }) => Object.values(price).every((each) => each === 0n)));
}

function stateOf(model: ModelConfig, before: PriceVersion | undefined, changes: readonly string[]): Finding['state'] {
  if (before !== undefined && changes.length === 0) return 'same';
  if (model.price === undefined) return 'new';
  return isImported(model) ? 'imported' : 'byHand';
}

function isImported(model: ModelConfig | undefined): boolean {
  return model?.price_source?.startsWith(mark) ?? false;
}

/**
 * Keeps entries of an earlier run for other offered models. A list of one version replaces a price when files are
 * merged; a mapping would be mixed with the one it replaces.
 */
async function writePrices(to: string, findings: readonly Finding[], config: ModelsConfig): Promise<void> {
  const before = Object.entries(await writtenBefore(to)).filter(([model]) => Object.hasOwn(config, model));
  const now = findings.map(({ model, price, source }) => [model, { price: [price], price_source: source }] as const);
  const all = [...new Map<string, unknown>([...before, ...now])];
  const models = Object.fromEntries(all.toSorted(([left], [right]) => (left < right ? -1 : 1)));
  await writeFile(to, `${header}\n\n${stringify({ models }, { lineWidth: 120 })}`);
}

async function writtenBefore(to: string): Promise<Record<string, unknown>> {
  const text = await readFile(to, 'utf8').catch(() => '');
  if (text === '') return {};
  if (!text.startsWith(header)) {
    const message = `${to} was not written by this command: name another file.`;
    throw new GatewayError('conflict', message, { field: 'to' });
  }
  return (parse(text) as { models?: Record<string, unknown> } | null)?.models ?? {};
}

function describe(findings: readonly Finding[], misses: readonly Miss[]): string[] {
  const title = { new: 'no price here yet', imported: 'imported before', byHand: 'hand-written here', same: '' };
  const changed = findings.filter(({ state }) => state !== 'same');
  return [
    ...changed.flatMap(({ model, entry, state, changes, leftOut }) => [
      `${model} (${title[state]}; "${entry}" in the list)`,
      ...changes.map((line) => `  ${line}`),
      ...leftOut.map((name) => `  ! ${name} cannot be said here`),
    ]),
    ...misses.map(({ model, why }) => `${model}: ${why}`),
  ];
}

function closingText(
  to: unknown,
  wanted: readonly Finding[],
  findings: readonly Finding[],
  overwrites: boolean,
): string {
  const same = findings.filter(({ state }) => state === 'same').length;
  const byHand = findings.filter(({ state }) => state === 'byHand').length;
  const left = byHand > 0 && !overwrites ? `; ${byHand} that were written by hand stay as they are (--write)` : '';
  if (typeof to !== 'string') return `${same} prices are the same. Nothing was written (--to FILE)${left}.`;
  const written =
    wanted.length === 0
      ? 'Nothing was written'
      : `Wrote ${wanted.length} prices to ${to}: include it behind the others`;
  return `${same} prices are the same. ${written}${left}.`;
}
