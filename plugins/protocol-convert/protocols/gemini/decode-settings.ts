/** Reads `generationConfig`: how the answer is to be made. Pure. */
import { efforts } from '../../../../core/traits.ts';
import type { OutputForm, Prompt, ReasoningWish } from '../../canon.ts';
import { type JsonObject, objectOf, textOf } from '../../json.ts';
import { notTranslatable } from '../../losses.ts';
import { lowerCaseTypes } from '../../wording/schemas.ts';
import type { Reading } from './reading.ts';

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

const known = new Set<string>([
  ...numbers.map(([field]) => field),
  'stopSequences',
  'responseLogprobs',
  'logprobs',
  'responseMimeType',
  'responseSchema',
  'responseJsonSchema',
  'responseModalities',
  'speechConfig',
  'imageConfig',
  'thinkingConfig',
]);

export function decodeSettings(config: JsonObject, reading: Reading): Settings {
  const settings: Settings = {};
  for (const [field, setting] of numbers) {
    const value = reading.number(config, field, `generationConfig.${field}`);
    if (value !== undefined && !(setting === 'choices' && value === 1)) settings[setting] = value;
  }
  const stop = stopSequences(config, reading);
  if (stop.length > 0) settings.stop = stop;
  if (config['responseLogprobs'] === true)
    settings.logprobs = reading.number(config, 'logprobs', 'generationConfig.logprobs') ?? 0;
  else reading.drop('generationConfig.logprobs', config['logprobs']);
  const output = outputForm(config, reading);
  if (output !== undefined) settings.output = output;
  const reasoning = reasoningWish(config, reading);
  if (reasoning !== undefined) settings.reasoning = reasoning;
  for (const [field, value] of Object.entries(config))
    if (!known.has(field)) reading.drop(`generationConfig.${field}`, value);
  return { ...settings, ...outputKinds(config, reading) };
}

function stopSequences(config: JsonObject, reading: Reading): string[] {
  const path = 'generationConfig.stopSequences';
  return reading.list(config, 'stopSequences', path).flatMap((text, index) => {
    if (typeof text !== 'string') throw reading.fault(`${path}[${index}]`, 'be a string');
    return text === '' ? [] : [text];
  });
}

function outputForm(config: JsonObject, reading: Reading): OutputForm | undefined {
  const mimeType = reading.text(config, 'responseMimeType', 'generationConfig.responseMimeType')?.toLowerCase();
  const path = reading.name('generationConfig.responseMimeType');
  if (mimeType === 'text/x.enum')
    throw notTranslatable(`The field "${path}" cannot be honoured: this model does not answer with bare values.`, path);
  const json = reading.object(config, 'responseJsonSchema', 'generationConfig.responseJsonSchema');
  const openApi = reading.object(config, 'responseSchema', 'generationConfig.responseSchema');
  const schema = json ?? (openApi === undefined ? undefined : lowerCaseTypes(openApi));
  if (schema !== undefined) return { form: 'schema', name: textOf(schema['title']), schema };
  if (mimeType === undefined || mimeType === '' || mimeType === 'text/plain') return undefined;
  if (mimeType === 'application/json') return { form: 'json' };
  throw reading.fault('generationConfig.responseMimeType', 'be text/plain or application/json');
}

/** A level counts more than a budget: the vendor takes only one of them. */
function reasoningWish(config: JsonObject, reading: Reading): ReasoningWish | undefined {
  const thinking = reading.object(config, 'thinkingConfig', 'generationConfig.thinkingConfig');
  if (thinking === undefined) return undefined;
  const path = 'generationConfig.thinkingConfig';
  const level = reading.text(thinking, 'thinkingLevel', `${path}.thinkingLevel`)?.toLowerCase();
  const budget = reading.number(thinking, 'thinkingBudget', `${path}.thinkingBudget`);
  const effort = efforts.find((name) => name === level);
  if (effort === undefined && level && level !== 'thinking_level_unspecified')
    throw reading.fault(`${path}.thinkingLevel`, 'be MINIMAL, LOW, MEDIUM or HIGH');
  return {
    visible: thinking['includeThoughts'] === true,
    ...(effort !== undefined ? { effort } : budget === undefined ? {} : budgetWish(budget)),
  };
}

/** -1: as the model likes. 0: none. */
function budgetWish(budget: number): ReasoningWish {
  if (budget === 0) return { effort: 'none' };
  return budget < 0 ? {} : { budgetTokens: budget };
}

function outputKinds(config: JsonObject, reading: Reading): Settings {
  const path = 'generationConfig.responseModalities';
  const kinds: ('image' | 'audio')[] = [];
  for (const [index, modality] of reading.list(config, 'responseModalities', path).entries()) {
    const kind = typeof modality === 'string' ? modality.toLowerCase() : undefined;
    if (kind === 'image' || kind === 'audio') kinds.push(kind);
    else if (kind !== 'text' && kind !== 'modality_unspecified') {
      const field = reading.name(`${path}[${index}]`);
      throw notTranslatable(`The field "${field}" cannot be honoured: this model does not answer like that.`, field);
    }
  }
  const speech = reading.object(config, 'speechConfig', 'generationConfig.speechConfig');
  const image = reading.object(config, 'imageConfig', 'generationConfig.imageConfig');
  const voice = textOf(objectOf(objectOf(speech?.['voiceConfig'])?.['prebuiltVoiceConfig'])?.['voiceName']);
  if (voice === undefined) reading.drop('generationConfig.speechConfig', speech);
  for (const [member, value] of Object.entries(speech ?? {}))
    if (voice !== undefined && member !== 'voiceConfig') reading.drop(`generationConfig.speechConfig.${member}`, value);
  return {
    ...(kinds.length === 0 ? {} : { outputKinds: kinds }),
    ...(voice === undefined ? {} : { audioOptions: { voice } }),
    ...(image === undefined || Object.keys(image).length === 0 ? {} : { imageOptions: image }),
  };
}
