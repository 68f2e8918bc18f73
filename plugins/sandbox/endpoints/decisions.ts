/** Decisions in the forms of OpenAI and TypeSafe: an option weighs the more of its words the input has. Pure. */
import { badRequest } from '../fault.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.ts';
import { parse } from '../request-body.ts';
import { parseDirectives } from '../script/directives.ts';
import { tokensOf } from '../script/tokens.ts';
import type { Job, Service } from './service.ts';

const mostQuestions = 400;
const mostOptions = 255;
const [leastLevels, mostLevels] = [2, 10];

export const openaiDecisions: Service = {
  errors: 'envelope',
  decode({ body }) {
    const json = parse(body);
    refuseOthers(json, [
      'model',
      'input',
      'questions',
      'prompt_cache_key',
      'prompt_cache_options',
      'safety_identifier',
    ]);
    const { input } = json;
    if (typeof input !== 'string' && listOf(input).length === 0) throw badRequest("Invalid type for 'input'.", 'input');
    const questions = bounded(listOf(json['questions']), mostQuestions, 'questions');
    return jobOf(json, input, (words) => ({
      answers: questions.map((question, index) => openaiAnswer(words, objectOf(question), `questions[${index}]`)),
    }));
  },
};

export const typesafeSystemone: Service = {
  errors: 'envelope',
  decode({ body }) {
    const json = parse(body);
    refuseOthers(json, ['model', 'state', 'questions']);
    const { state } = json;
    if (typeof state !== 'string' && (typeof state !== 'object' || state === null))
      throw badRequest('state must be a string, an object or an array', 'state');
    const questions = Object.entries(objectOf(json['questions']));
    bounded(questions, mostQuestions, 'questions');
    return jobOf(json, state, (words) => ({
      answers: Object.fromEntries(
        questions.map(([id, question]) => [id, typesafeAnswer(words, objectOf(question), `questions.${id}`)]),
      ),
    }));
  },
};

function jobOf(json: JsonObject, input: unknown, answered: (words: ReadonlySet<string>) => object): Job {
  const model = textOf(json['model']);
  if (model === undefined) throw badRequest("Missing required parameter: 'model'.", 'model');
  const { text, directives } = parseDirectives(flat(input));
  const tokens = tokensOf(text.length) + tokensOf(JSON.stringify(json['questions']).length);
  const counts = 'input' in json ? openaiUsage(tokens) : { input_tokens: tokens, output_tokens: 0 };
  const usage = directives.no_usage ? {} : { usage: counts };
  const body = JSON.stringify({ ...answered(wordsOf(text)), model, ...usage });
  return { model, directives, usage: { input: tokens }, type: 'application/json', body };
}

function openaiUsage(tokens: number): object {
  return {
    input_tokens: tokens,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: 0,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: tokens,
  };
}

function openaiAnswer(words: ReadonlySet<string>, question: JsonObject, field: string): object {
  const type = question['type'];
  const name = textOf(question['name']) ?? null;
  const instructions = instructionsOf(question, field);
  if (type === 'predicate') return { type, name, probability: shareOf(words, instructions) };
  if (type === 'choice') {
    const choices = bounded(listOf(question['choices']), mostOptions, `${field}.choices`, 2).map(objectOf);
    const weighed = weigh(words, choices.map(flat));
    const probabilities = choices.map(({ value }, index) => ({ value, probability: weighed.weights[index] }));
    return { type, name, choice: choices[weighed.best]!['value'], confidence: weighed.confidence, probabilities };
  }
  if (type !== 'score') throw badRequest(`Invalid value: '${String(type)}'.`, `${field}.type`);
  const levels = bounded(listOf(question['levels']), mostLevels, `${field}.levels`, leastLevels).map(objectOf);
  const { weights, confidence, mean } = weigh(words, levels.map(flat));
  const probabilities = levels.map(({ label }, value) => ({ label, value, probability: weights[value] }));
  return { type, name, score: mean, confidence, probabilities };
}

function typesafeAnswer(words: ReadonlySet<string>, question: JsonObject, field: string): object {
  const { type, criteria } = question;
  const instructions = instructionsOf(question, field);
  if (type === 'noul') return { type, noul: shareOf(words, `${instructions} ${flat(objectOf(criteria)['true'])}`) };
  if (type === 'choice') {
    const options = bounded(Object.entries(objectOf(criteria)), mostOptions, `${field}.criteria`);
    const { weights, best, confidence } = weigh(words, options.map(flat));
    const probabilities = Object.fromEntries(options.map(([label], index) => [label, weights[index]]));
    return { type, choice: options[best]![0], confidence, probabilities };
  }
  if (type !== 'score') throw badRequest(`unknown type of question: ${String(type)}`, `${field}.type`);
  const levels = bounded(listOf(criteria), mostLevels, `${field}.criteria`, leastLevels);
  const { weights, confidence, mean } = weigh(words, levels.map(flat));
  const probabilities = Object.fromEntries(weights.entries());
  return { type, score: mean, legend: Object.fromEntries(levels.entries()), probabilities, confidence };
}

function instructionsOf(question: JsonObject, field: string): string {
  const text = flat(question['instructions']);
  if (text === '') throw badRequest(`Missing required parameter: '${field}.instructions'.`, `${field}.instructions`);
  return text;
}

function bounded<Entry>(list: readonly Entry[], most: number, field: string, least = 1): readonly Entry[] {
  if (list.length < least || list.length > most)
    throw badRequest(`'${field}' must have ${least} to ${most} entries.`, field);
  return list;
}

function refuseOthers(json: JsonObject, members: readonly string[]): void {
  const unknown = Object.keys(json).find((name) => !members.includes(name));
  if (unknown !== undefined) throw badRequest(`Unknown parameter: '${unknown}'.`, unknown);
}

/** All texts of a value, without the names of its members. */
function flat(value: unknown): string {
  if (typeof value !== 'object' || value === null) return value === undefined || value === null ? '' : String(value);
  const parts = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  return parts.map(flat).join(' ');
}

const wordsOf = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
const rounded = (value: number) => Math.round(value * 1e6) / 1e6;

/** The share of the question's words that the input has, never quite 0 or 1. */
function shareOf(words: ReadonlySet<string>, text: string): number {
  const wanted = [...wordsOf(text)];
  const shared = wanted.filter((word) => words.has(word)).length;
  return rounded(0.02 + (0.96 * shared) / Math.max(1, wanted.length));
}

/** The last probability is what the others leave of 1. */
function weigh(words: ReadonlySet<string>, options: readonly string[]) {
  const shares = options.map((option) => shareOf(words, option));
  const sum = shares.reduce((total, share) => total + share, 0);
  const first = shares.slice(0, -1).map((share) => rounded(share / sum));
  const weights = [...first, rounded(1 - first.reduce((total, share) => total + share, 0))];
  const most = Math.max(...weights);
  const mean = rounded(weights.reduce((total, weight, index) => total + weight * index, 0));
  return { weights, best: weights.indexOf(most), confidence: most, mean };
}
