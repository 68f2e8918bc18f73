/** Moderations in the protocol of OpenAI: a text is flagged where it names one of the categories. Pure. */
import { badRequest } from '../fault.ts';
import { isObject, type JsonObject, listOf, textOf } from '../json.ts';
import { parse } from '../request-body.ts';
import { type Directives, parseDirectives } from '../script/directives.ts';
import type { Job, Service } from './service.ts';

const categories = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/intent',
  'self-harm/instructions',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
];

export const openaiModerations: Service = { errors: 'envelope', decode: ({ body }, id) => jobOf(parse(body), id) };

function jobOf(json: JsonObject, id: string): Job {
  const model = json['model'] === undefined ? 'omni-moderation-latest' : textOf(json['model']);
  if (model === undefined) throw badRequest("Invalid type for 'model'.", 'model');
  const { input } = json;
  const texts = typeof input === 'string' ? [input] : listOf(input).map(textIn);
  if (texts.length === 0) throw badRequest("'$.input' is invalid.", 'input');
  const parsed = texts.map((text) => parseDirectives(text));
  const directives: Directives = Object.assign({}, ...parsed.map((one) => one.directives));
  const isParts = listOf(input).some(isObject);
  const results = (isParts ? [parsed.map(({ text }) => text).join(' ')] : parsed.map(({ text }) => text)).map(resultOf);
  const body = JSON.stringify({ id: `modr-${id}`, model, results });
  return { model, directives, usage: {}, type: 'application/json', body };
}

function textIn(item: unknown): string {
  if (typeof item === 'string') return item;
  if (isObject(item) && item['type'] === 'text' && typeof item['text'] === 'string') return item['text'];
  if (isObject(item) && item['type'] === 'image_url' && isObject(item['image_url'])) return '';
  throw badRequest("'$.input' is invalid.", 'input');
}

function resultOf(text: string): object {
  const flagged = new Map(categories.map((name) => [name, text.toLowerCase().includes(name)]));
  const of = <Value>(value: (is: boolean) => Value) =>
    Object.fromEntries([...flagged].map(([name, is]) => [name, value(is)]));
  return {
    flagged: [...flagged.values()].includes(true),
    categories: of((is) => is),
    category_scores: of((is) => (is ? 0.97 : 0.0001)),
    category_applied_input_types: of((is) => (is ? ['text'] : [])),
  };
}
