/** What requests about vector stores ask for. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { ClientRequest } from '../../core/contract/message.ts';
import { isObject, type JsonObject, listOf, objectOf } from '../../core/json/json.ts';
import { invalid, readBody } from '../../core/json/request-body.ts';
import { metadataIn } from '../common/kit/forms/metadata.ts';
import { type Attributes, type Filter, filterIn, isValue } from './filters.ts';
import type { Chunking } from './text/chunks.ts';

export interface FileOrder {
  readonly fileId: string;
  readonly attributes: Attributes;
  readonly chunking: Chunking;
  /** The member that names the file. */
  readonly field: string;
}

export interface StoreTerms {
  readonly name: string | null;
  readonly description: string | null;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly expiresDays: number | null;
}

export interface SearchOrder {
  readonly queries: readonly string[];
  /** As the client has sent it. */
  readonly asked: unknown;
  readonly filter: Filter | undefined;
  readonly limit: number;
  readonly threshold: number;
}

/** Files of one request. */
const mostFiles = 500;
const usualChunking: Chunking = { maxTokens: 800, overlapTokens: 400 };

/** Throws invalid_request for members that no such request has: nothing that is asked for is left undone in silence. */
function membersOf(request: ClientRequest, known: readonly string[]): JsonObject {
  const names = new Set(known);
  const { json } = readBody(request.body, names);
  const unknown = Object.keys(json).find((name) => !names.has(name));
  if (unknown !== undefined) throw invalid(`There is no "${unknown.slice(0, 64)}" here.`, unknown.slice(0, 64));
  return json;
}

export function createOrder(request: ClientRequest): {
  readonly terms: StoreTerms;
  readonly files: readonly FileOrder[];
} {
  const json = membersOf(request, [
    'name',
    'description',
    'metadata',
    'expires_after',
    'file_ids',
    'chunking_strategy',
  ]);
  const chunking = chunkingIn(json['chunking_strategy'], 'chunking_strategy');
  const terms = {
    name: textIn(json, 'name', 256),
    description: textIn(json, 'description', 2_048),
    metadata: metadataIn(json),
    expiresDays: daysIn(json['expires_after']),
  };
  return { terms, files: idsIn(json['file_ids'], 'file_ids').map((one) => ({ ...one, attributes: {}, chunking })) };
}

/** What is absent stays. */
export function changeOrder(request: ClientRequest): Partial<StoreTerms> {
  const json = membersOf(request, ['name', 'description', 'metadata', 'expires_after']);
  return {
    ...('name' in json ? { name: textIn(json, 'name', 256) } : {}),
    ...('description' in json ? { description: textIn(json, 'description', 2_048) } : {}),
    ...('metadata' in json ? { metadata: metadataIn(json) } : {}),
    ...('expires_after' in json ? { expiresDays: daysIn(json['expires_after']) } : {}),
  };
}

export function attachOrder(request: ClientRequest): FileOrder {
  return fileIn(membersOf(request, ['file_id', 'attributes', 'chunking_strategy']), '');
}

export function attributesOrder(request: ClientRequest): Attributes {
  const json = membersOf(request, ['attributes']);
  if (!('attributes' in json)) throw invalid('The field "attributes" is missing.', 'attributes');
  return attributesIn(json['attributes'], 'attributes');
}

export function batchOrder(request: ClientRequest): readonly FileOrder[] {
  const json = membersOf(request, ['file_ids', 'files', 'attributes', 'chunking_strategy']);
  if (json['files'] === undefined) {
    const chunking = chunkingIn(json['chunking_strategy'], 'chunking_strategy');
    const attributes = attributesIn(json['attributes'], 'attributes');
    const ids = idsIn(json['file_ids'], 'file_ids');
    if (ids.length === 0) throw invalid('The field "file_ids" is a list of at least one file.', 'file_ids');
    return ids.map((one) => ({ ...one, attributes, chunking }));
  }
  const other = ['file_ids', 'attributes', 'chunking_strategy'].find((name) => json[name] !== undefined);
  if (other !== undefined) throw invalid('With "files", each file has its own.', other);
  const files = listOf(json['files']);
  if (files.length === 0 || files.length > mostFiles)
    throw invalid(`The field "files" is a list of 1 to ${mostFiles} files.`, 'files');
  return files.map((file, index) => {
    if (!isObject(file)) throw invalid('This is an object with "file_id".', `files[${index}]`);
    return fileIn(file, `files[${index}].`);
  });
}

function fileIn(json: JsonObject, before: string): FileOrder {
  const { file_id: fileId } = json;
  const field = `${before}file_id`;
  if (typeof fileId !== 'string' || fileId === '') throw invalid('This is the id of an uploaded file.', field);
  return {
    ...{ fileId, field },
    attributes: attributesIn(json['attributes'], `${before}attributes`),
    chunking: chunkingIn(json['chunking_strategy'], `${before}chunking_strategy`),
  };
}

function idsIn(value: unknown, field: string): { readonly fileId: string; readonly field: string }[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > mostFiles)
    throw invalid(`This is a list of at most ${mostFiles} ids.`, field);
  return value.map((fileId: unknown, index) => {
    if (typeof fileId === 'string' && fileId !== '') return { fileId, field: `${field}[${index}]` };
    throw invalid('This is the id of an uploaded file.', `${field}[${index}]`);
  });
}

function textIn(json: JsonObject, field: string, most: number): string | null {
  const text = json[field] ?? null;
  if (text === null || (typeof text === 'string' && text.length <= most && !text.includes('\u0000'))) return text;
  throw invalid(`The field "${field}" is a text of at most ${most} characters.`, field);
}

function daysIn(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  const { anchor, days } = objectOf(value) ?? {};
  if (anchor !== 'last_active_at') throw invalid('This is "last_active_at".', 'expires_after.anchor');
  if (typeof days === 'number' && Number.isInteger(days) && days >= 1 && days <= 365) return days;
  throw invalid('This is a whole number from 1 to 365.', 'expires_after.days');
}

function chunkingIn(value: unknown, field: string): Chunking {
  if (value === undefined || value === null) return usualChunking;
  const strategy = objectOf(value);
  if (strategy?.['type'] === 'auto') return usualChunking;
  if (strategy?.['type'] !== 'static') throw invalid('This is "auto" or "static".', `${field}.type`);
  const { max_chunk_size_tokens: most, chunk_overlap_tokens: overlap } = objectOf(strategy['static']) ?? {};
  if (typeof most !== 'number' || !Number.isInteger(most) || most < 100 || most > 4_096)
    throw invalid('This is a whole number from 100 to 4096.', `${field}.static.max_chunk_size_tokens`);
  if (typeof overlap !== 'number' || !Number.isInteger(overlap) || overlap < 0 || overlap > most / 2)
    throw invalid(
      'This is a whole number, at most half of "max_chunk_size_tokens".',
      `${field}.static.chunk_overlap_tokens`,
    );
  return { maxTokens: most, overlapTokens: overlap };
}

function attributesIn(value: unknown, field: string): Attributes {
  if (value === undefined || value === null) return {};
  const entries = isObject(value) ? Object.entries(value) : [];
  const fits = ([name, one]: [string, unknown]) =>
    name.length <= 64 &&
    !name.includes('\u0000') &&
    isValue(one) &&
    !(typeof one === 'string' && (one.length > 512 || one.includes('\u0000')));
  if (isObject(value) && entries.length <= 16 && entries.every(fits)) return Object.fromEntries(entries) as Attributes;
  throw invalid(
    'These are at most 16 texts of 512 characters, numbers, true or false, with names of 64 characters.',
    field,
  );
}

/** Texts of one search. */
const mostQueries = 16;
const longestQuery = 4_096;

export function searchOrder(request: ClientRequest): SearchOrder {
  const json = membersOf(request, ['query', 'filters', 'max_num_results', 'ranking_options', 'rewrite_query']);
  const queries = Array.isArray(json['query']) ? listOf(json['query']) : [json['query']];
  const fits = (one: unknown) => typeof one === 'string' && one.trim() !== '' && one.length <= longestQuery;
  if (queries.length === 0 || queries.length > mostQueries || !queries.every(fits))
    throw invalid(
      `The field "query" is a text of 1 to ${longestQuery} characters, or a list of at most ${mostQueries} such texts.`,
      'query',
    );
  if (json['rewrite_query'] === true) throw unsupported('Queries are searched for as they are.', 'rewrite_query');
  return {
    ...{ queries: queries as string[], asked: json['query'], filter: filterIn(json['filters'], 'filters') },
    limit: limitIn(json['max_num_results'], 'max_num_results', 10),
    threshold: thresholdIn(json['ranking_options'], 'ranking_options'),
  };
}

export function limitIn(value: unknown, field: string, usual: number): number {
  if (value === undefined || value === null) return usual;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 50) return value;
  throw invalid('This is a whole number from 1 to 50.', field);
}

/** There is one order, that of the cosines, whatever ranker is named. */
export function thresholdIn(value: unknown, field: string): number {
  if (value === undefined || value === null) return 0;
  const { ranker = 'auto', score_threshold: threshold = 0, ...others } = objectOf(value) ?? {};
  const other = Object.keys(others).find((name) => others[name] !== null);
  if (!isObject(value) || other !== undefined)
    throw unsupported(
      'This is an object with "ranker" and "score_threshold".',
      other === undefined ? field : `${field}.${other}`,
    );
  if (!['none', 'auto', 'default-2024-11-15', 'default_2024_08_21'].includes(String(ranker)))
    throw invalid('This is "auto", "none" or "default-2024-11-15".', `${field}.ranker`);
  if (typeof threshold === 'number' && threshold >= 0 && threshold <= 1) return threshold;
  throw invalid('This is a number from 0 to 1.', `${field}.score_threshold`);
}

function unsupported(message: string, field: string): GatewayError {
  return new GatewayError('invalid_request', message, { field, shouldRetry: false });
}
