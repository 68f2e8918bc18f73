/** Bodies of several parts (multipart/form-data, RFC 7578): which arguments are files, and the bytes of a request. Pure. */
import { hash } from 'node:crypto';
import { isObject, type JsonObject } from '../../../core/json/json.ts';
import { WrongArguments } from '../errors.ts';
import { bodyArgument } from './document.ts';

/** Files by name, with the type that each is sent as. */
export type FileParts = ReadonlyMap<string, string>;

const plainType = /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/;

/** The members of a body that are files; `resolve` follows references. */
export function filesOf(media: JsonObject, resolve: (schema: unknown) => unknown): FileParts {
  const schema = resolve(media['schema']);
  const properties = isObject(schema) && isObject(schema['properties']) ? schema['properties'] : {};
  const encoding = isObject(media['encoding']) ? media['encoding'] : {};
  return new Map(
    Object.entries(properties).flatMap(([name, one]) => {
      const property = resolve(one);
      const item = isObject(property) && property['type'] === 'array' ? resolve(property['items']) : property;
      if (!isFile(item)) return [];
      const said = Object(encoding[name]).contentType;
      return [[name, typeof said === 'string' && plainType.test(said) ? said : 'application/octet-stream']];
    }),
  );
}

const isFile = (schema: unknown): boolean =>
  isObject(schema) &&
  (schema['format'] === 'binary' ||
    (schema['contentMediaType'] !== undefined && schema['contentEncoding'] === undefined));

/** The body's schema as models see it: files are given as base64. */
export function withFiles(schema: unknown, files: FileParts): unknown {
  if (!isObject(schema) || files.size === 0) return schema;
  const file = { type: 'string', contentEncoding: 'base64', description: 'A file, as base64.' };
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const shown = [...files.keys()].map((name) => {
    const isList = Object(properties[name]).type === 'array';
    return [name, isList ? { type: 'array', items: file } : file];
  });
  return { ...schema, properties: { ...properties, ...Object.fromEntries(shown) } };
}

interface Part {
  readonly head: string;
  readonly content: Buffer;
}

/** Throws WrongArguments. */
export function multipart(given: unknown, files: FileParts): { readonly type: string; readonly body: Uint8Array } {
  if (!isObject(given)) throw new WrongArguments(`The argument "${bodyArgument}" must be an object.`);
  const parts = Object.entries(given).flatMap(([name, value]) => {
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.map((one) => partOf(name, one, files.get(name)));
  });
  const all = Buffer.concat(parts.flatMap(({ head, content }) => [Buffer.from(head), content]));
  // Made of the content, so that it cannot stand in it.
  const boundary = `part-${hash('sha256', all)}`;
  const lines = parts.flatMap(({ head, content }) => [
    Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
    content,
    Buffer.from('\r\n'),
  ]);
  const body = Buffer.concat([...lines, Buffer.from(`--${boundary}--\r\n`)]);
  return { type: `multipart/form-data; boundary=${boundary}`, body };
}

function partOf(name: string, value: unknown, fileType: string | undefined): Part {
  const quoted = `"${name.toWellFormed().replaceAll('\n', '%0A').replaceAll('\r', '%0D').replaceAll('"', '%22')}"`;
  const head = `content-disposition: form-data; name=${quoted}`;
  if (fileType !== undefined) {
    const isBase64 = typeof value === 'string' && /^[\w+/-]*={0,2}$/.test(value) && value.length % 4 !== 1;
    if (!isBase64)
      throw new WrongArguments(`The argument "${bodyArgument}.${name.slice(0, 64)}" must be a file as base64.`);
    return { head: `${head}; filename=${quoted}\r\ncontent-type: ${fileType}`, content: Buffer.from(value, 'base64') };
  }
  if (typeof value === 'object' && value !== null)
    return { head: `${head}\r\ncontent-type: application/json`, content: Buffer.from(JSON.stringify(value)) };
  return { head, content: Buffer.from(String(value).toWellFormed()) };
}
