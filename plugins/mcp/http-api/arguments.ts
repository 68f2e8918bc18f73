/** The arguments of a call as a request to the API. Pure. */
import { isObject, type JsonObject } from '../../../core/json/json.ts';
import { WrongArguments } from '../errors.ts';
import { bodyArgument } from './document.ts';
import { multipart } from './multipart.ts';
import type { Operation, Parameter } from './operations.ts';

export interface ApiRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
}

const longestHeader = 8_192;

/** `headers`: what each request to the API has, whatever the arguments say. Throws WrongArguments. */
export function requestOf(
  { path, parameters, body }: Operation,
  given: JsonObject,
  base: string,
  headers: Readonly<Record<string, string>>,
): ApiRequest {
  const known = new Set([...parameters.map(({ argument }) => argument), ...(body === undefined ? [] : [bodyArgument])]);
  const unknown = Object.keys(given).find((name) => !known.has(name));
  if (unknown !== undefined) throw new WrongArguments(`There is no argument "${unknown.slice(0, 64)}".`);
  const values = new Map<Parameter, unknown>();
  for (const parameter of parameters) {
    const value = given[parameter.argument];
    if (value !== undefined && value !== null) values.set(parameter, value);
    else if (parameter.required) throw missing(parameter.argument);
  }
  const content = given[bodyArgument];
  const hasBody = body !== undefined && content !== undefined;
  if (body?.required === true && !hasBody) throw missing(bodyArgument);
  const sent = hasBody ? contentOf(body, content) : undefined;
  const own = sent === undefined ? {} : { 'content-type': sent.type };
  return {
    url: addressOf(path, values, base),
    headers: { accept: 'application/json, */*;q=0.5', ...headersOf(values), ...own, ...headers },
    body: sent?.body,
  };
}

const missing = (argument: string) => new WrongArguments(`The argument "${argument}" is missing.`);

function addressOf(path: string, values: ReadonlyMap<Parameter, unknown>, base: string): string {
  const named = new Map(
    [...values].filter(([{ place }]) => place === 'path').map(([one, value]) => [one.name, partOf(one, value)]),
  );
  const filled = path.replaceAll(/\{([^{}]*)\}|[^\x21-\x7e]+/g, (whole, name?: string) =>
    name === undefined ? encoded(whole) : named.get(name)!,
  );
  const root = new URL(base);
  const prefix = root.pathname.replace(/\/$/, '');
  const url = new URL(`${root.origin}${prefix}${filled}`);
  // Neither a document nor an argument leads out of the API.
  if (url.origin !== root.origin || url.pathname !== `${prefix}${filled}` || url.hash !== '')
    throw new WrongArguments('These arguments make no address of this API.');
  const query = [...values].flatMap(([one, value]) => (one.place === 'query' ? pairsOf(one, value) : []));
  // Members of objects can have any name.
  const repeated = query.find(([name]) => root.searchParams.has(name));
  if (repeated !== undefined) throw new WrongArguments('An argument has the name of one that is set already.');
  url.search = new URLSearchParams([...root.searchParams, ...query]).toString();
  return url.href;
}

function headersOf(values: ReadonlyMap<Parameter, unknown>): Record<string, string> {
  const headers: Record<string, string> = {};
  const cookies: string[] = [];
  for (const [parameter, value] of values) {
    if (parameter.place === 'header')
      headers[parameter.name.toLowerCase()] = headerText(parameter, simple(parameter, value));
    if (parameter.place === 'cookie')
      cookies.push(...pairsOf(parameter, value).map(([name, text]) => `${encoded(name)}=${encoded(text)}`));
  }
  return cookies.length === 0 ? headers : { ...headers, cookie: cookies.join('; ') };
}

function headerText({ argument }: Parameter, text: string): string {
  if (text.length <= longestHeader && /^[\t\x20-\x7e]*$/.test(text)) return text;
  throw new WrongArguments(`The argument "${argument}" must be printable ASCII on one line.`);
}

/** Inside a path: a part that is "." or ".." would lead elsewhere. */
function partOf(parameter: Parameter, value: unknown): string {
  const text = simple(parameter, value, encoded);
  if (text !== '' && text !== '.' && text !== '..') return text;
  throw new WrongArguments(`The argument "${parameter.argument}" must be a name or a number.`);
}

const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());

type Encode = (text: string) => string;

/** https://spec.openapis.org/oas/v3.1.1.html#style-values */
function simple(parameter: Parameter, value: unknown, encode: Encode = (text) => text): string {
  if (parameter.isJson) return encode(JSON.stringify(value));
  if (Array.isArray(value)) return value.map((one) => encode(scalar(parameter, one))).join(',');
  if (!isObject(value)) return encode(scalar(parameter, value));
  return Object.entries(value)
    .map(([name, one]) => [encode(name), encode(scalar(parameter, one))].join(parameter.explode ? '=' : ','))
    .join(',');
}

const separators = new Map([
  ['spaceDelimited', ' '],
  ['pipeDelimited', '|'],
]);

function pairsOf(parameter: Parameter, value: unknown): [name: string, text: string][] {
  const { name, style, explode, isJson } = parameter;
  if (isJson) return [[name, JSON.stringify(value)]];
  if (Array.isArray(value)) {
    const texts = value.map((one) => scalar(parameter, one));
    if (explode) return texts.map((text) => [name, text]);
    return [[name, texts.join(separators.get(style) ?? ',')]];
  }
  if (!isObject(value)) return [[name, scalar(parameter, value)]];
  const members = Object.entries(value).map(([member, one]) => [member, scalar(parameter, one)] as const);
  if (style === 'deepObject') return members.map(([member, text]) => [`${name}[${member}]`, text]);
  if (explode) return members.map(([member, text]) => [member, text]);
  return [[name, members.flat().join(',')]];
}

function scalar({ argument }: Pick<Parameter, 'argument'>, value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new WrongArguments(`The argument "${argument}" is too deep.`);
}

function contentOf({ type, form, files }: NonNullable<Operation['body']>, content: unknown) {
  return form === 'multipart' ? multipart(content, files) : { type, body: written(form, content) };
}

function written(form: 'json' | 'form' | 'text', content: unknown): string {
  if (form === 'json') return JSON.stringify(content);
  if (form === 'text') {
    if (typeof content !== 'string') throw new WrongArguments(`The argument "${bodyArgument}" must be text.`);
    return content;
  }
  if (!isObject(content)) throw new WrongArguments(`The argument "${bodyArgument}" must be an object.`);
  const pairs = Object.entries(content).flatMap(([name, value]): [string, string][] => {
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.map((one) => [name, isObject(one) || Array.isArray(one) ? JSON.stringify(one) : String(one)]);
  });
  return new URLSearchParams(pairs).toString();
}
