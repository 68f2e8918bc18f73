/** Ids of objects that vendors store (files, containers, conversations …), found in requests and answers. Pure. */

import { isObject, type JsonObject, listOf, textOf } from '../../../core/json/json.ts';
import type { VendorId } from '../../common/wire/protocols.ts';
import { asLatin1, valuePattern } from './fast-scan.ts';

export interface SearchOptions {
  /** Hosts on which vendors store files; addresses on other hosts are public, as far as their path allows. */
  readonly hosts?: () => ReadonlySet<string>;
  /** An answer: results of third-party servers are skipped, as their content is not the vendor's own. */
  readonly isAnswer?: true;
}

/** Members with one id or a list of ids, at any depth. */
const idMembers = new Map([
  ['file_id', 'File'],
  ['fileId', 'File'],
  ['file_ids', 'File'],
  ['container_id', 'Container'],
  ['vector_store_id', 'Vector store'],
  ['vector_store_ids', 'Vector store'],
  ['cachedContent', 'Cached content'],
  ['cached_content', 'Cached content'],
  ['fileSearchStoreNames', 'File search store'],
  ['file_search_store_names', 'File search store'],
  ['ragCorpus', 'Corpus'],
  ['rag_corpus', 'Corpus'],
  ['ragCorpora', 'Corpus'],
  ['rag_corpora', 'Corpus'],
  ['ragFileIds', 'File'],
  ['rag_file_ids', 'File'],
]);

/** Members that hold an id as objects; as text most of them have another meaning. */
const objectKinds = new Map([
  ['container', 'Container'],
  ['audio', 'Audio'],
  ['voice', 'Voice'],
]);
/** Skills that a customer of the vendor has created; the vendor's public skills have other types. */
const ownSkills = new Set<unknown>(['custom', 'skill_reference']);

const searchIds = ['datastore', 'engine', 'dataStore', 'data_store'];

/** The client's own data, or text of the model: anything in them that looks like an id refers to nothing. */
const opaque = new Set([
  'parameters',
  'input_schema',
  'inputSchema',
  'json_schema',
  'schema',
  'responseSchema',
  'response_schema',
  'responseJsonSchema',
  'response_json_schema',
  'functionDeclarations',
  'function_declarations',
  'function',
  'arguments',
  'args',
  'response',
  'metadata',
  'attributes',
  'labels',
  'usage',
  'logprobs',
]);
const echoMembers = new Set<string | number>(['annotations', 'citations', 'results']);
/** Calls of the vendor's own tools, and their results. `tool_result` alone belongs to the client. */
const echoType = /_call$|[a-z]_tool_result$/;
const foreignResult = /^mcp_.*result$/;

const idPattern = valuePattern('file_id', 'file_ids', 'container_id', 'container');

const nameBeginnings = [Buffer.from('"file_'), Buffer.from('"conta')];

/**
 * Whether a frame may contain ids. Called for frames that are not parsed for another reason. A search for the first bytes of the member
 * names runs first: on 48 KB it is about 25 times faster than the pattern.
 */
export const mayHoldIds = (frame: Buffer): boolean =>
  nameBeginnings.some((beginning) => frame.includes(beginning)) && idPattern.test(asLatin1(frame));

/** More than any real request contains; ids after these would not be checked. */
export const mostVendorIds = 2_000;

/** In document order, one entry for each occurrence of an id; at most `mostVendorIds` and one. */
export function vendorIdsIn(json: JsonObject, options: SearchOptions = {}): readonly VendorId[] {
  return search.run(json, options);
}

const none: readonly VendorId[] = [];
const noOptions: SearchOptions = {};
/** Requests have fewer levels; answers are not searched any deeper. */
const deepest = 160;

/** The meaning of a member's name; most names have none, which one look-up shows. */
type Role = 'id' | 'object' | 'address' | 'search' | 'skill' | 'opaque' | 'input' | 'type';
const roles = new Map<string, Role>([
  ...[...idMembers.keys()].map((name) => [name, 'id'] as const),
  ...[...objectKinds.keys()].map((name) => [name, 'object'] as const),
  ...[...opaque].map((name) => [name, 'opaque'] as const),
  ['fileUri', 'address'],
  ['file_uri', 'address'],
  ['vertexAiSearch', 'search'],
  ['vertex_ai_search', 'search'],
  ['skill_id', 'skill'],
  ['input', 'input'],
  ['type', 'type'],
]);

/** One walk over a request or an answer. It costs little until an id is found: most requests contain none. */
class Search {
  #options = noOptions;
  /**
   * The path from the root to the current position: member names and indexes, and the objects at each step. Each begins with an
   * unused entry that is never removed: V8 frees the memory of a list when it becomes empty.
   */
  readonly #path: (string | number)[] = [''];
  readonly #objects: JsonObject[] = [{}];
  #found: VendorId[] | undefined;

  run(json: JsonObject, options: SearchOptions): readonly VendorId[] {
    this.#options = options;
    // Where the search before this one has failed.
    if (this.#path.length > 1) this.#path.length = 1;
    if (this.#objects.length > 1) this.#objects.length = 1;
    this.#found = undefined;
    const { prompt, conversation } = json;
    if (isObject(prompt)) this.#addNamed('Prompt', 'prompt', prompt);
    if (conversation !== undefined) this.#addNamed('Conversation', 'conversation', conversation);
    this.#object(json);
    const found = this.#found ?? none;
    this.#found = undefined;
    this.#options = noOptions;
    return found;
  }

  #object(object: JsonObject): void {
    const { type } = object;
    if (this.#options.isAnswer === true && typeof type === 'string' && foreignResult.test(type)) return;
    this.#objects.push(object);
    for (const key in object) {
      const value = object[key];
      const role = roles.get(key);
      if (role !== undefined) this.#member(object, key, value, role);
      else if (typeof value === 'object' && value !== null) this.#walk(key, value);
    }
    this.#objects.pop();
  }

  #member(object: JsonObject, key: string, value: unknown, role: Role): void {
    switch (role) {
      case 'type':
        if (value === 'image_generation_call') this.#image(object);
        break;
      case 'id':
        this.#ids(idMembers.get(key)!, key, value);
        break;
      case 'address':
        if (typeof value === 'string' && isKeptAddress(value, this.#options.hosts)) this.#add('File', value, key);
        break;
      case 'skill':
        if (ownSkills.has(object['type'])) this.#add('Skill', value, key);
        break;
      case 'object':
        this.#named(key, value);
        break;
      case 'search':
        if (isObject(value)) this.#dataStores(key, value);
        break;
      case 'input':
        if (typeof value === 'object' && value !== null && !typeOf(object).endsWith('tool_use')) this.#walk(key, value);
    }
  }

  #walk(key: string | number, value: object): void {
    if (this.#path.length > deepest) return;
    this.#path.push(key);
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) {
        const item: unknown = value[index];
        if (typeof item === 'object' && item !== null) this.#walk(index, item);
      }
    } else this.#object(value as JsonObject);
    this.#path.pop();
  }

  /** An image that the vendor generated may be referred to without its bytes: the vendor stores them. */
  #image(object: JsonObject): void {
    if (this.#options.isAnswer === true || textOf(object['result']) === undefined)
      this.#add('Image', object['id'], 'id', false);
  }

  /** A container may be given as its id alone; audio and voice members that are strings have another meaning. */
  #named(key: string, value: unknown): void {
    if (isObject(value) || key === 'container') this.#addNamed(objectKinds.get(key)!, key, value);
    if (typeof value === 'object' && value !== null) this.#walk(key, value);
  }

  /** One id, or a list. */
  #ids(kind: string, key: string, value: unknown): void {
    if (!Array.isArray(value)) {
      this.#add(kind, value, key);
      return;
    }
    this.#path.push(key);
    for (const [index, id] of value.entries()) this.#add(kind, id, index);
    this.#path.pop();
  }

  /** An id, or an object with one. */
  #addNamed(kind: string, key: string, value: unknown): void {
    if (!isObject(value)) {
      this.#add(kind, value, key);
      return;
    }
    this.#path.push(key);
    this.#add(kind, value['id'], 'id');
    this.#path.pop();
  }

  #dataStores(key: string, search: JsonObject): void {
    this.#path.push(key);
    for (const name of searchIds) this.#add('Data store', search[name], name);
    for (const spec of listOf(search['dataStoreSpecs'] ?? search['data_store_specs']))
      if (isObject(spec)) this.#dataStores('dataStoreSpecs', { ...spec, dataStoreSpecs: undefined });
    this.#path.pop();
  }

  #add(kind: string, value: unknown, step: string | number, isEcho?: boolean): void {
    const id = textOf(value);
    if (id === undefined) return;
    this.#found ??= [];
    if (this.#found.length > mostVendorIds) return;
    this.#found.push({ id, kind, field: fieldOf([...this.#path, step]), isEcho: isEcho ?? this.#isEcho() });
  }

  #isEcho(): boolean {
    return this.#path.some((step) => echoMembers.has(step)) || this.#objects.some((one) => echoType.test(typeOf(one)));
  }
}

/** Used again for each search: its lists need not grow again. */
const search = new Search();

function typeOf({ type }: JsonObject): string {
  return typeof type === 'string' ? type : '';
}

function fieldOf(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/** `/v1beta/files/…` on any host: vendors' own file addresses have this form behind proxies too. */
const filesPath = /\/v\d+[a-z0-9]*\/files(?:\/|$)/i;

/** Whether the vendor reads this address with its customer's rights; web addresses on other hosts are public. */
function isKeptAddress(address: string, hosts: SearchOptions['hosts']): boolean {
  const url = URL.parse(address);
  if (url === null) return true;
  if (url.protocol === 'data:') return false;
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return true;
  if (filesPath.test(decoded(url.pathname))) return true;
  return hosts?.().has(hostOf(url)) === true;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** The name without a final dot. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/\.$/, '');
}
