/** The operations of an OpenAPI document as tools. Pure. */
import { hash } from 'node:crypto';
import type { Tool } from '@modelcontextprotocol/client';
import { isObject, type JsonObject, listOf, textOf } from '../../../core/json/json.ts';
import { bodyArgument, WrongDocument } from './document.ts';
import { type FileParts, filesOf, withFiles } from './multipart.ts';
import { resolved, Schemas } from './schemas.ts';

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const;
const mostOperations = 20_000;
const longestName = 128;
const longestDescription = 2_048;

export interface Parameter {
  /** What the tool calls it. */
  readonly argument: string;
  readonly name: string;
  readonly place: 'path' | 'query' | 'header' | 'cookie';
  readonly required: boolean;
  readonly style: string;
  readonly explode: boolean;
  /** Its value is JSON. */
  readonly isJson: boolean;
}

interface OperationBody {
  readonly type: string;
  readonly form: 'json' | 'form' | 'multipart' | 'text';
  readonly required: boolean;
  /** Its members that are files. */
  readonly files: FileParts;
}

export interface Operation {
  readonly tool: Tool;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: OperationBody | undefined;
}

export interface Operations {
  readonly operations: readonly Operation[];
  /** Operations that cannot be tools: `GET /x: why`. */
  readonly leftOut: readonly string[];
}

/** Headers and parameters of the query that the gateway sends itself, by their names: no model is asked for them. */
interface Given {
  readonly headers: ReadonlySet<string>;
  readonly query: ReadonlySet<string>;
}

/** Those with a wanted name, `most` at most. Throws WrongDocument where none of them can be a tool. */
export function operationsOf(
  document: JsonObject,
  given: Given,
  isWanted: (name: string) => boolean,
  most: number,
): Operations {
  const operations: Operation[] = [];
  const leftOut: string[] = [];
  const names = new Set<string>();
  for (const written of listed(document)) {
    const name = nameOf(written, names);
    names.add(name);
    if (!isWanted(name)) continue;
    try {
      if (operations.length === most) throw new WrongDocument(`there are ${most} tools before it`);
      operations.push(operationOf(document, written, name, given));
    } catch (error) {
      if (!(error instanceof WrongDocument)) throw error;
      leftOut.push(`${name}: ${error.message}`);
    }
  }
  if (operations.length === 0)
    throw new WrongDocument(
      `it has no operation that can be a tool${leftOut[0] === undefined ? '' : ` (${leftOut[0]})`}`,
    );
  return { operations, leftOut };
}

interface Written {
  readonly path: string;
  readonly method: (typeof methods)[number];
  readonly item: JsonObject;
  readonly operation: JsonObject;
}

function listed(document: JsonObject): readonly Written[] {
  const { paths } = document;
  if (!isObject(paths)) throw new WrongDocument('it has no paths');
  const found = Object.entries(paths).flatMap(([path, written]): Written[] => {
    if (!path.startsWith('/') || !isObject(written)) return [];
    const item = itemOf(document, written);
    return methods.flatMap((method): Written[] => {
      const operation = item[method];
      return isObject(operation) ? [{ path, method, item, operation }] : [];
    });
  });
  if (found.length > mostOperations) throw new WrongDocument(`it has more than ${mostOperations} operations`);
  return found;
}

/** A reference that leads nowhere takes one path away, and not the document. */
function itemOf(document: JsonObject, written: JsonObject): JsonObject {
  try {
    const item = resolved(document, written);
    return isObject(item) ? item : {};
  } catch {
    return {};
  }
}

/** What a tool is made of. */
interface Making {
  readonly document: JsonObject;
  readonly given: Given;
  readonly schemas: Schemas;
  /** The tool's arguments so far. */
  readonly properties: Record<string, unknown>;
}

function operationOf(document: JsonObject, written: Written, name: string, given: Given): Operation {
  const { path, method, operation } = written;
  if (/[?#]/.test(path)) throw new WrongDocument('its path has a query or a fragment');
  const making: Making = { document, given, schemas: new Schemas(document), properties: {} };
  const { properties } = making;
  const body = bodyOf(making, operation);
  const parameters = parametersOf(making, written);
  for (const [, part] of path.matchAll(/\{([^{}]*)\}/g))
    if (!parameters.some((one) => one.place === 'path' && one.name === part))
      throw new WrongDocument('its path has a parameter that is not described');
  const required = [
    ...parameters.filter((one) => one.required).map(({ argument }) => argument),
    ...(body?.required === true ? [bodyArgument] : []),
  ];
  const { definitions } = making.schemas;
  return {
    tool: {
      name,
      ...described(operation),
      inputSchema: {
        ...{ type: 'object', properties, required, additionalProperties: false },
        ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }),
      } as Tool['inputSchema'],
      annotations: {
        ...{ readOnlyHint: method === 'get', destructiveHint: method === 'delete' },
        ...{ idempotentHint: method !== 'post' && method !== 'patch', openWorldHint: true },
      },
    },
    method: method.toUpperCase() as Operation['method'],
    ...{ path, parameters, body },
  };
}

function nameOf({ path, method, operation }: Written, names: ReadonlySet<string>): string {
  const plain = textOf(operation['operationId']) ?? `${method}${path}`;
  const clean = plain
    .replaceAll(/[^\w.-]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
    .slice(0, longestName);
  if (clean !== '' && !names.has(clean)) return clean;
  return `${clean.slice(0, longestName - 9)}_${hash('sha256', `${method} ${path}`).slice(0, 8)}`;
}

function described({ summary, description }: JsonObject): { readonly title?: string; readonly description?: string } {
  const title = textOf(summary);
  const text = [title, textOf(description)].filter((one) => one !== undefined).join('\n\n');
  return {
    ...(title === undefined ? {} : { title: title.slice(0, longestName) }),
    ...(text === '' ? {} : { description: text.slice(0, longestDescription) }),
  };
}

/** A parameter of the operation replaces that of its path. */
function parametersOf({ document, given, schemas, properties }: Making, { item, operation }: Written): Parameter[] {
  const all = new Map<string, JsonObject>();
  for (const one of [...listOf(item['parameters']), ...listOf(operation['parameters'])]) {
    const parameter = resolved(document, one);
    if (isObject(parameter)) all.set(`${parameter['in']} ${parameter['name']}`, parameter);
  }
  return [...all.values()].flatMap((one) => {
    const parameter = parameterOf(one, properties);
    if (isGiven(parameter, given)) return [];
    const content = isObject(one['content']) ? Object.values(one['content'])[0] : undefined;
    const schema = schemas.converted((isObject(content) ? content['schema'] : one['schema']) ?? {});
    const description = textOf(one['description'])?.slice(0, longestDescription);
    properties[parameter.argument] =
      typeof schema === 'object' && description !== undefined ? { description, ...schema } : schema;
    return [parameter];
  });
}

/** Headers with a meaning of their own: OpenAPI ignores the first three; the others are the connection's. */
const reserved = new Set([
  ...['accept', 'content-type', 'authorization', 'host', 'content-length', 'connection', 'transfer-encoding'],
  ...['cookie', 'proxy-authorization', 'te', 'trailer', 'upgrade', 'keep-alive', 'expect', 'user-agent'],
]);

function isGiven({ place, name }: Parameter, { headers, query }: Given): boolean {
  if (place === 'header') return headers.has(name.toLowerCase()) || reserved.has(name.toLowerCase());
  if (place === 'cookie') return headers.has('cookie');
  return place === 'query' && query.has(name);
}

const styles: Record<Parameter['place'], string> = { path: 'simple', query: 'form', header: 'simple', cookie: 'form' };

function parameterOf(written: JsonObject, properties: JsonObject): Parameter {
  const { name, in: place, style: of, explode } = written;
  if (typeof name !== 'string' || name === '' || typeof place !== 'string' || !Object.hasOwn(styles, place))
    throw new WrongDocument('a parameter has no name or no place that is known');
  const where = place as Parameter['place'];
  const style = typeof of === 'string' ? of : styles[where];
  const isTaken = Object.hasOwn(properties, name);
  return {
    argument: isTaken ? `${where}_${name}` : name,
    ...{ name, place: where, style },
    required: written['required'] === true || where === 'path',
    explode: typeof explode === 'boolean' ? explode : style === 'form',
    isJson: isObject(written['content']),
  };
}

/** The body's argument is there before those of parameters, which get another name where one is called so. */
function bodyOf({ document, schemas, properties }: Making, operation: JsonObject): OperationBody | undefined {
  const written = resolved(document, operation['requestBody']);
  if (!isObject(written) || !isObject(written['content'])) return undefined;
  const required = written['required'] === true;
  for (const form of ['json', 'form', 'multipart', 'text'] as const) {
    const [type, found] = Object.entries(written['content']).find(([name]) => forms[form].test(name)) ?? [];
    if (type === undefined) continue;
    const media = isObject(found) ? found : {};
    const files = form === 'multipart' ? filesOf(media, (schema) => resolved(document, schema)) : noFiles;
    properties[bodyArgument] = bodySchema(form, media, { document, schemas, files });
    return { type: type.includes('*') ? 'application/json' : type, form, required, files };
  }
  if (required) throw new WrongDocument('its body is neither JSON, nor a form, nor text');
  return undefined;
}

const noFiles: FileParts = new Map();

function bodySchema(
  form: OperationBody['form'],
  media: JsonObject,
  { document, schemas, files }: Pick<Making, 'document' | 'schemas'> & { readonly files: FileParts },
): unknown {
  if (form === 'text') return { type: 'string' };
  if (form !== 'multipart') return schemas.converted(media['schema'] ?? {});
  return withFiles(schemas.converted(resolved(document, media['schema']) ?? {}), files);
}

const forms = {
  json: /^(?:application\/(?:[\w.+-]*\+)?json\b|\*\/\*|application\/\*)/i,
  form: /^application\/x-www-form-urlencoded\b/i,
  multipart: /^multipart\/form-data\b/i,
  text: /^text\//i,
};
