/** Decodes `generationConfig`. Pure. */

import { isObject, type JsonObject, objectOf, textOf } from '../../../../../core/json/json.ts';
import { notTranslatable } from '../../../../common/canonical/dropped-parameters.ts';
import type { OutputForm, Prompt, ReasoningSettings } from '../../../../common/canonical/prompt.ts';
import { efforts } from '../../../../common/domain/traits.ts';
import { lowerCaseTypes } from '../../../encoding/schemas.ts';
import type { RequestDecoder } from './request-members.ts';

type Settings = { -readonly [K in keyof Prompt]?: Prompt[K] };

const numbers = [
  ['temperature', 'temperature'],
  ['topP', 'topP'],
  ['topK', 'topK'],
  ['candidateCount', 'choices'],
  ['maxOutputTokens', 'maxOutputTokens'],
  ['seed', 'seed'],
  ['presencePenalty', 'presencePenalty'],
  ['frequencyPenalty', 'frequencyPenalty'],
] as const;

/** Every vendor refuses a limit of 0 tokens and a count of 0 answers. */
const counts: ReadonlySet<string> = new Set(['maxOutputTokens', 'choices']);

const known = new Set<string>([
  ...numbers.map(([field]) => field),
  'stopSequences',
  'responseLogprobs',
  'logprobs',
  'responseMimeType',
  'responseSchema',
  'responseJsonSchema',
  'responseFormat',
  'responseModalities',
  'speechConfig',
  'imageConfig',
  'thinkingConfig',
]);

export function decodeSettings(config: JsonObject, decoder: RequestDecoder): Settings {
  const settings = decodeNumbers(config, decoder);
  const stop = stopSequences(config, decoder);
  if (stop.length > 0) settings.stop = stop;
  if (config['responseLogprobs'] === true)
    settings.logprobs = decoder.number(config, 'logprobs', 'generationConfig.logprobs') ?? 0;
  else decoder.drop('generationConfig.logprobs', config['logprobs']);
  const formats = responseFormats(config, decoder);
  const output = outputForm(config, formats.text, decoder);
  if (output !== undefined) settings.output = output;
  const reasoning = decodeReasoningSettings(config, decoder);
  if (reasoning !== undefined) settings.reasoning = reasoning;
  for (const [field, value] of Object.entries(config))
    if (!known.has(field)) decoder.drop(`generationConfig.${field}`, value);
  return { ...settings, ...outputKinds(config, formats.image, decoder) };
}

function decodeNumbers(config: JsonObject, decoder: RequestDecoder): Settings {
  const settings: Settings = {};
  for (const [field, setting] of numbers) {
    const value = decoder.number(config, field, `generationConfig.${field}`);
    if (value === undefined) continue;
    if (counts.has(setting) && !(Number.isSafeInteger(value) && value >= 1))
      throw decoder.fault(`generationConfig.${field}`, 'be a whole number of at least 1');
    if (!(setting === 'choices' && value === 1)) settings[setting] = value;
  }
  return settings;
}

function stopSequences(config: JsonObject, decoder: RequestDecoder): string[] {
  const path = 'generationConfig.stopSequences';
  return decoder.list(config, 'stopSequences', path).flatMap((text, index) => {
    if (typeof text !== 'string') throw decoder.fault(`${path}[${index}]`, 'be a string');
    return text === '' ? [] : [text];
  });
}

interface ResponseFormats {
  /** The format of texts, and where it is in the request. */
  readonly text?: { readonly format: JsonObject; readonly path: string } | undefined;
  readonly image?: JsonObject;
}

/** `responseFormat`, the successor of `responseMimeType` and the schemas: a format for each kind of output. */
function responseFormats(config: JsonObject, decoder: RequestDecoder): ResponseFormats {
  const formats: { text?: ResponseFormats['text']; image?: JsonObject } = {};
  const list = 'generationConfig.responseFormat';
  for (const [index, entry] of decoder.list(config, 'responseFormat', list).entries()) {
    if (!isObject(entry)) throw decoder.fault(`${list}[${index}]`, 'be an object');
    for (const kind of Object.keys(entry)) {
      const path = `${list}[${index}].${kind}`;
      const format = decoder.object(entry, kind, path);
      if (format === undefined) continue;
      if (kind === 'text') formats.text = { format, path };
      else if (kind === 'image') formats.image = imageFormat(format, path, decoder);
      else decoder.drop(path, format);
    }
  }
  return formats;
}

export const imageOptionsName = 'generationConfig.imageConfig';

/** Where this request has its image options. */
export function imageOptionsField(json: JsonObject): string {
  const config = objectOf(json['generationConfig'] ?? json['generation_config']) ?? {};
  const formats = config['responseFormat'] ?? config['response_format'];
  if (formats === undefined || (config['imageConfig'] ?? config['image_config']) !== undefined) return imageOptionsName;
  const path = 'generationConfig.responseFormat';
  return Array.isArray(formats)
    ? `${path}[${formats.findIndex((entry) => isObject(entry) && 'image' in entry)}].image`
    : `${path}.image`;
}

/** The members that `imageConfig` has too; delivery and file type are the vendor's own. */
function imageFormat(format: JsonObject, path: string, decoder: RequestDecoder): JsonObject {
  const options = Object.entries(format).filter(([member, value]) => {
    const isOption = (member === 'aspectRatio' || member === 'imageSize') && typeof value === 'string';
    if (!isOption) decoder.drop(`${path}.${member}`, value);
    return isOption;
  });
  return Object.fromEntries(options);
}

function outputForm(
  config: JsonObject,
  text: ResponseFormats['text'],
  decoder: RequestDecoder,
): OutputForm | undefined {
  if (text !== undefined) {
    for (const [member, value] of Object.entries(text.format))
      if (member !== 'mimeType' && member !== 'schema') decoder.drop(`${text.path}.${member}`, value);
    const given = decoder.object(text.format, 'schema', `${text.path}.schema`);
    const isOpenApi = /^[A-Z]+$/.test(textOf(given?.['type']) ?? '');
    const schema = given !== undefined && isOpenApi ? lowerCaseTypes(given) : given;
    const form = formOf(text.format, 'mimeType', `${text.path}.mimeType`, schema, decoder);
    if (form !== undefined) return form;
  }
  const json = decoder.object(config, 'responseJsonSchema', 'generationConfig.responseJsonSchema');
  const openApi = decoder.object(config, 'responseSchema', 'generationConfig.responseSchema');
  const schema = json ?? (openApi === undefined ? undefined : lowerCaseTypes(openApi));
  return formOf(config, 'responseMimeType', 'generationConfig.responseMimeType', schema, decoder);
}

/** A type may be sent as the name of an enum: `APPLICATION_JSON`. */
function formOf(
  holder: JsonObject,
  member: string,
  path: string,
  schema: JsonObject | undefined,
  decoder: RequestDecoder,
): OutputForm | undefined {
  const mimeType = decoder.text(holder, member, path)?.toLowerCase().replace('_', '/');
  if (mimeType === 'text/x.enum') {
    const field = decoder.name(path);
    throw notTranslatable(
      `The field "${field}" cannot be honoured: this model does not answer with bare values.`,
      field,
    );
  }
  if (schema !== undefined) return { form: 'schema', name: textOf(schema['title']), schema };
  if (mimeType === undefined || mimeType === '' || mimeType === 'text/plain') return undefined;
  if (mimeType === 'application/json') return { form: 'json' };
  throw decoder.fault(path, 'be text/plain or application/json');
}

/** A level takes precedence over a budget: the vendor accepts only one of them. */
function decodeReasoningSettings(config: JsonObject, decoder: RequestDecoder): ReasoningSettings | undefined {
  const thinking = decoder.object(config, 'thinkingConfig', 'generationConfig.thinkingConfig');
  if (thinking === undefined) return undefined;
  const path = 'generationConfig.thinkingConfig';
  const level = decoder.text(thinking, 'thinkingLevel', `${path}.thinkingLevel`)?.toLowerCase();
  const budget = decoder.number(thinking, 'thinkingBudget', `${path}.thinkingBudget`);
  const effort = efforts.find((name) => name === level);
  if (effort === undefined && level && level !== 'thinking_level_unspecified')
    throw decoder.fault(`${path}.thinkingLevel`, 'be MINIMAL, LOW, MEDIUM or HIGH');
  return {
    visible: thinking['includeThoughts'] === true,
    ...(effort !== undefined ? { effort } : budget === undefined ? {} : decodeBudget(budget)),
  };
}

/** -1: the model decides. 0: no reasoning. */
function decodeBudget(budget: number): ReasoningSettings {
  if (budget === 0) return { effort: 'none' };
  return budget < 0 ? {} : { budgetTokens: budget };
}

function outputKinds(config: JsonObject, format: JsonObject | undefined, decoder: RequestDecoder): Settings {
  const kinds = mediaKinds(config, decoder);
  const voice = voiceOf(config, decoder);
  const image = { ...decoder.object(config, 'imageConfig', imageOptionsName), ...format };
  return {
    ...(kinds.length === 0 ? {} : { outputKinds: kinds }),
    ...(voice === undefined ? {} : { audioOptions: { voice } }),
    ...(Object.keys(image).length === 0 ? {} : { imageOptions: image }),
  };
}

function mediaKinds(config: JsonObject, decoder: RequestDecoder): ('image' | 'audio')[] {
  const path = 'generationConfig.responseModalities';
  const kinds: ('image' | 'audio')[] = [];
  for (const [index, modality] of decoder.list(config, 'responseModalities', path).entries()) {
    const kind = typeof modality === 'string' ? modality.toLowerCase() : undefined;
    if (kind === 'image' || kind === 'audio') kinds.push(kind);
    else if (kind !== 'text' && kind !== 'modality_unspecified') {
      const field = decoder.name(`${path}[${index}]`);
      throw notTranslatable(`The field "${field}" cannot be honoured: this model does not answer like that.`, field);
    }
  }
  return kinds;
}

/** The other members of the speech settings are dropped. */
function voiceOf(config: JsonObject, decoder: RequestDecoder): string | undefined {
  const speech = decoder.object(config, 'speechConfig', 'generationConfig.speechConfig');
  const voice = textOf(objectOf(objectOf(speech?.['voiceConfig'])?.['prebuiltVoiceConfig'])?.['voiceName']);
  if (voice === undefined) decoder.drop('generationConfig.speechConfig', speech);
  for (const [member, value] of Object.entries(speech ?? {}))
    if (voice !== undefined && member !== 'voiceConfig') decoder.drop(`generationConfig.speechConfig.${member}`, value);
  return voice;
}
