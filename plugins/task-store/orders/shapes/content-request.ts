/** Parses a `generateContent` request for a model that makes images: its texts are the prompt, its images the references. Pure. */
import { isObject, type JsonObject, objectOf, oneOrMany, textOf } from '../../../../core/json/json.ts';
import { invalid, readBody } from '../../../../core/json/request-body.ts';
import type { Order, Reference } from '../../../common/media/adapters.ts';
import { unsupported } from '../../../common/media/refuse.ts';
import type { Submission } from '../../contract.ts';
import { optionalFlag, optionalWhole } from './fields.ts';
import { mostImages, mostReferences, sizeOf } from './image-request.ts';
import { readImage } from './references.ts';

const single = new Set([
  'contents',
  'generationConfig',
  'generation_config',
  'systemInstruction',
  'system_instruction',
]);
const top = new Set([
  ...single,
  'model',
  'stream',
  'candidateCount',
  'candidate_count',
  'responseModalities',
  'response_modalities',
]);
const settings = new Set(['responseModalities', 'imageConfig', 'candidateCount', 'seed']);
const imageSettings = new Set(['aspectRatio', 'imageSize']);
const resolutions = ['1k', '2k', '4k'] as const;

interface ContentOrder extends Submission {
  /** The body asks for a stream, as clients of the specification do. */
  readonly stream: boolean;
  /** It has the form that the specification alone has, and is answered in it. */
  readonly isSpecForm: boolean;
}

/** Throws invalid_request that names the field. */
export function readContentRequest(bytes: Uint8Array, model: string): ContentOrder {
  const { json } = readBody(bytes, single);
  const { prompt, references } = conversationOf(json);
  const config = camelCased(objectOf(either(json, 'generationConfig')) ?? {});
  const image = camelCased(objectOf(config['imageConfig']) ?? {});
  refuseOthers(json, config);
  const seed = config['seed'] ?? undefined;
  const order: Order = {
    kind: 'image',
    model,
    prompt,
    count: optionalWhole({ ...camelCased(json), ...config }, 'candidateCount', 1, mostImages) ?? 1,
    ...geometryOf(image),
    references,
    extra: {
      ...(seed === undefined ? {} : { seed }),
      ...named(json, top, ''),
      ...named(config, settings, 'generationConfig.'),
      ...named(image, imageSettings, 'generationConfig.imageConfig.'),
    },
    fields: {
      references: 'contents',
      count: 'generationConfig.candidateCount',
      ratio: 'generationConfig.imageConfig.aspectRatio',
      size: 'generationConfig.imageConfig.imageSize',
      resolution: 'generationConfig.imageConfig.imageSize',
    },
  };
  const stream = optionalFlag(json, 'stream') === true;
  return { order, waits: true, form: 'base64', callbackUrl: undefined, stream, isSpecForm: isSpecForm(json) };
}

/** As for models of conversations. */
function isSpecForm(json: JsonObject): boolean {
  if ((json['stream'] ?? undefined) !== undefined) return true;
  if ((either(json, 'generationConfig') ?? undefined) !== undefined) return false;
  return ['candidateCount', 'responseModalities'].some((name) => (either(json, name) ?? undefined) !== undefined);
}

/** The texts of the instruction and of the user's turns, and the images of all turns: an edit refers to earlier results. */
function conversationOf(json: JsonObject): { readonly prompt: string; readonly references: readonly Reference[] } {
  const texts = partsOf(either(json, 'systemInstruction')).map((part) => textOf(part['text']) ?? '');
  const references: Reference[] = [];
  for (const [index, content] of oneOrMany(json['contents']).entries()) {
    if (!isObject(content)) throw invalid(`The field "contents[${index}]" must be an object.`, `contents[${index}]`);
    const parts = partsOf(content).map((part, place) => ({ part, field: `contents[${index}].parts[${place}]` }));
    const said = parts.filter(({ part }) => part['thought'] !== true);
    if (content['role'] !== 'model') texts.push(...said.flatMap(({ part }) => textOf(part['text']) ?? []));
    references.push(...said.flatMap(({ part, field }) => referenceOf(part, field) ?? []));
  }
  const prompt = texts.filter((text) => text.trim() !== '').join('\n\n');
  if (prompt === '') throw invalid('The field "contents" has no text that says what to make.', 'contents');
  if (references.length > mostReferences)
    throw invalid(`The field "contents" may hold at most ${mostReferences} images.`, 'contents');
  return { prompt, references };
}

function partsOf(content: unknown): JsonObject[] {
  return oneOrMany(objectOf(content)?.['parts']).filter(isObject);
}

/** Throws for parts other than texts and images. */
function referenceOf(part: JsonObject, field: string): Reference | undefined {
  const inline = objectOf(either(part, 'inlineData'));
  const file = objectOf(either(part, 'fileData'));
  if (inline !== undefined) return readImage(inline['data'], `${field}.inlineData.data`);
  if (file !== undefined) return readImage(either(file, 'fileUri'), `${field}.fileData.fileUri`);
  const [kind] = Object.keys(part).filter((name) => !beside.has(name));
  if (kind === undefined) return undefined;
  throw unsupported(`The model makes images of texts and images; it takes no "${kind}".`, `${field}.${kind}`);
}

const beside = new Set([
  'text',
  'thoughtSignature',
  'thought_signature',
  'thought',
  'mediaResolution',
  'media_resolution',
]);

/** What would make another answer is refused. */
function refuseOthers(json: JsonObject, config: JsonObject): void {
  if (oneOrMany(json['tools'] ?? undefined).length > 0) throw unsupported('The model takes no tools.', 'tools');
  const modalities = oneOrMany(config['responseModalities'] ?? either(json, 'responseModalities') ?? undefined);
  if (modalities.length === 0 || modalities.some((name) => String(name).toUpperCase() === 'IMAGE')) return;
  throw unsupported('The model answers with images.', 'generationConfig.responseModalities');
}

function geometryOf({ aspectRatio, imageSize }: JsonObject): Pick<Order, 'ratio' | 'size' | 'resolution'> {
  const text = textOf(imageSize)?.toLowerCase();
  const resolution = resolutions.find((word) => word === text);
  const size = text === undefined ? undefined : sizeOf(text);
  const isKnown = text === undefined || resolution !== undefined || size !== undefined;
  if (!isKnown) throw unsupported('The model makes 1K, 2K or 4K.', 'generationConfig.imageConfig.imageSize');
  if (size !== undefined) return { size };
  const ratio = textOf(aspectRatio);
  return { resolution: resolution ?? '1k', ...(ratio === undefined || ratio === 'auto' ? {} : { ratio }) };
}

/** Members that have no place in an order, by the client's names: reported as left out. */
function named(json: JsonObject, known: ReadonlySet<string>, prefix: string): JsonObject {
  const others = Object.entries(json).filter(([name, value]) => !known.has(name) && (value ?? undefined) !== undefined);
  return Object.fromEntries(others.map(([name, value]) => [`${prefix}${name}`, value]));
}

/** A member in either case. */
function either(json: JsonObject, camel: string): unknown {
  return json[camel] ?? json[camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)];
}

function camelCased(json: JsonObject): JsonObject {
  const entries = Object.entries(json);
  return Object.fromEntries(
    entries.map(([name, value]) => [name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), value]),
  );
}
