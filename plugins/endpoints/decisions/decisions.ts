/** Decisions as OpenAI writes them: a list of questions about a text or a conversation, and answers in their order. Pure. */
import { isObject, type JsonObject, listOf, textOf } from '../../../core/json/json.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { checkLength, isAbsent, unsupportedByModel } from '../checks.ts';
import { unreadable } from '../errors.ts';
import { heldImageTokens, heldTokens } from '../estimate.ts';
import { wire } from '../wires.ts';
import { listIn, numberOf, optionalText, questionOf, typeMismatch } from './checks.ts';
import type { Answer, Content, Form, Item, Level, Option, Question } from './form.ts';

export const decisionsForm: Form = {
  protocol: wire.openaiDecisions,
  path: '/decisions',
  measure({ json, bytes }, limits) {
    const { input, questions } = json;
    if (isAbsent(input)) throw invalid('The field "input" is missing.', 'input');
    if (typeof input !== 'string' && !Array.isArray(input))
      throw invalid('The field "input" must be a string or a list.', 'input');
    if (isAbsent(questions)) throw invalid('The field "questions" is missing.', 'questions');
    if (!Array.isArray(questions)) throw invalid('The field "questions" must be a list.', 'questions');
    checkLength(questions, 'questions', limits.questions);
    for (const [index, question] of questions.entries())
      questionOf(question, `questions[${index}]`, ['choices', 'levels']);
    const images = [...listOf(input), ...questions].flatMap(imagesIn);
    const sent = images.reduce((sum, url) => sum + url.length, 0);
    const tokens = heldTokens(bytes.length - Math.min(sent, bytes.length)) + heldImageTokens * images.length;
    return { questions: questions.length, tokens };
  },
  read(json) {
    const others = new Set(Object.keys(json).filter((name) => !members.has(name) && !isAbsent(json[name])));
    const given = listOf(json['questions']) as readonly JsonObject[];
    const ids = idsOf(given);
    const questions = given.map((question, index) => readQuestion(question, index, ids[index]!, others));
    return { input: readInput(json['input'], others), questions, others: [...others] };
  },
  encode: ({ input, questions }, model) => ({
    model,
    input: encodeInput(input),
    questions: questions.map(encodeQuestion),
  }),
  readAnswers(json, questions) {
    const answers = listOf(json['answers']);
    if (answers.length !== questions.length) throw unreadable('there are not as many answers as questions');
    return questions.map((question, index) => readAnswer(answers[index], question));
  },
  encodeAnswers: (answers, questions, model, usage) => ({
    answers: answers.map((answer, index) => encodeAnswer(answer, questions[index]!)),
    model,
    usage: usageOf(usage),
  }),
};

const members = new Set(['model', 'input', 'questions']);
/** Members of each item that mean something to a reader of the conversation. */
const itemMembers = new Set([
  'role',
  'type',
  'name',
  'namespace',
  'arguments',
  'input',
  'call_id',
  'content',
  'output',
]);
const outputs = new Set<unknown>(['function_call_output', 'custom_tool_call_output']);
const calls = new Set<unknown>(['function_call', 'custom_tool_call']);

/** The addresses of images in a message, a tool's result or a question. */
function imagesIn(item: unknown): string[] {
  if (!isObject(item)) return [];
  return [item['content'], item['output'], item['instructions']].flatMap((parts) =>
    listOf(parts).flatMap((part) =>
      isObject(part) && part['type'] === 'input_image' ? [textOf(part['image_url']) ?? ''] : [],
    ),
  );
}

/** Names where they are distinct, else numbers for the others. */
function idsOf(questions: readonly JsonObject[]): readonly string[] {
  const taken = new Set<string>();
  const named = questions.map((question) => {
    const name = textOf(question['name']);
    if (name === undefined || name === '' || taken.has(name)) return undefined;
    taken.add(name);
    return name;
  });
  return named.map((name, index) => {
    if (name !== undefined) return name;
    let id = `question_${index + 1}`;
    while (taken.has(id)) id = `${id}_`;
    taken.add(id);
    return id;
  });
}

function readQuestion(question: JsonObject, index: number, id: string, others: Set<string>): Question {
  const field = `questions[${index}]`;
  const lists: Readonly<Record<string, string | undefined>> = { choice: 'choices', score: 'levels' };
  const type = question['type'] as string;
  const known = ['type', 'instructions', 'name', lists[type]];
  for (const name of Object.keys(question)) if (!known.includes(name)) others.add(`questions.${name}`);
  const { instructions } = question;
  if (isAbsent(instructions)) throw invalid(`The field "${field}.instructions" is missing.`, `${field}.instructions`);
  const base = {
    field,
    id,
    name: optionalText(question, 'name', field) ?? null,
    instructions: contentOf(instructions, `${field}.instructions`, others),
  };
  if (type === 'predicate') return { ...base, asks: { kind: 'yes', criteria: undefined } };
  if (type === 'choice')
    return { ...base, asks: { kind: 'choice', options: listIn(question, 'choices', field).map(optionIn(field)) } };
  if (type === 'score')
    return { ...base, asks: { kind: 'score', levels: listIn(question, 'levels', field).map(levelIn(field)) } };
  throw unsupportedByModel(`${field}.type`, 'it takes predicate, choice and score');
}

const optionIn =
  (question: string) =>
  (option: unknown, index: number): Option => {
    const field = `${question}.choices[${index}]`;
    const { value } = isObject(option) ? option : ({} as JsonObject);
    if (!isObject(option) || (typeof value !== 'string' && typeof value !== 'boolean'))
      throw invalid(`The field "${field}.value" must be a string, true or false.`, `${field}.value`);
    return { value, description: optionalText(option, 'description', field) };
  };

const levelIn =
  (question: string) =>
  (level: unknown, index: number): Level => {
    const field = `${question}.levels[${index}]`;
    const label = isObject(level) ? level['label'] : undefined;
    if (!isObject(level) || typeof label !== 'string')
      throw invalid(`The field "${field}.label" must be a string.`, `${field}.label`);
    return { label, description: optionalText(level, 'description', field), written: label };
  };

function readInput(input: unknown, others: Set<string>): readonly Item[] {
  if (typeof input === 'string') return [userItem([{ kind: 'text', text: input }])];
  return listOf(input).map((item, index) => itemOf(item, `input[${index}]`, others));
}

function itemOf(item: unknown, field: string, others: Set<string>): Item {
  if (!isObject(item)) throw invalid(`The field "${field}" must be an object.`, field);
  for (const name of Object.keys(item)) if (!itemMembers.has(name)) others.add(`input.${name}`);
  const { type = 'message', role } = item;
  const labelled = (without: readonly string[]): JsonObject =>
    Object.fromEntries(Object.entries(item).filter(([name]) => itemMembers.has(name) && !without.includes(name)));
  if (type === 'message') {
    if (typeof role !== 'string') throw invalid(`The field "${field}.role" must be a string.`, `${field}.role`);
    const content = contentOf(item['content'], `${field}.content`, others);
    return { label: labelled(['content', 'type']), member: 'content', content };
  }
  const [label, member] = [labelled(['output']), 'output' as const];
  if (calls.has(type)) return { label, member, content: undefined };
  if (!outputs.has(type)) throw unsupportedByModel(`${field}.type`, 'it is no message and no call of a tool');
  return { label, member, content: contentOf(item['output'], `${field}.output`, others) };
}

export const userItem = (content: readonly Content[]): Item => ({
  label: { role: 'user' },
  member: 'content',
  content,
});

function contentOf(value: unknown, field: string, others: Set<string>): readonly Content[] {
  if (typeof value === 'string') return [{ kind: 'text', text: value }];
  if (!Array.isArray(value)) throw invalid(`The field "${field}" must be a string or a list.`, field);
  return value.map((part: unknown, index) => {
    const at = `${field}[${index}]`;
    if (!isObject(part)) throw invalid(`The field "${at}" must be an object.`, at);
    if (!isAbsent(part['prompt_cache_breakpoint'])) others.add('prompt_cache_breakpoint');
    if (part['type'] === 'input_image') return { kind: 'image', field: at };
    if (part['type'] === 'input_json') return { kind: 'data', data: part['data'] };
    const text = part['type'] === 'refusal' ? part['refusal'] : part['text'];
    if (typeof text === 'string') return { kind: 'text', text };
    throw invalid(`The field "${at}" must be a part with a text, an image or data.`, at);
  });
}

function encodeInput(input: readonly Item[]): unknown {
  const [first] = input;
  const { label, content = [] } = first ?? userItem([]);
  const [part] = content;
  if (input.length === 1 && content.length === 1 && part?.kind === 'text') return part.text;
  return [{ ...label, content: content.map(encodePart) }];
}

function encodePart(part: Content): object {
  if (part.kind === 'image') throw unsupportedByModel(part.field, 'it takes no images');
  return part.kind === 'text' ? { type: 'input_text', text: part.text } : { type: 'input_json', data: part.data };
}

const described = (description: string | undefined) => (description === undefined ? {} : { description });

function encodeQuestion({ id, instructions, asks }: Question): object {
  const [part] = instructions;
  const isText = instructions.length === 1 && part?.kind === 'text';
  const base = { instructions: isText ? part.text : instructions.map(encodePart), name: id };
  if (asks.kind === 'choice') {
    const choices = asks.options.map(({ value, description }) => ({ value, ...described(description) }));
    return { type: 'choice', ...base, choices };
  }
  if (asks.kind === 'score') {
    const levels = asks.levels.map(({ label, description }) => ({ label, ...described(description) }));
    return { type: 'score', ...base, levels };
  }
  if (asks.criteria === undefined) return { type: 'predicate', ...base };
  // A predicate has no criteria; a choice of true and false has a description of each, and says the same probability.
  const { true: yes, false: no } = asks.criteria;
  const choices = [
    { value: true, ...described(yes) },
    { value: false, ...described(no) },
  ];
  return { type: 'choice', ...base, choices };
}

function readAnswer(answer: unknown, { asks }: Question): Answer {
  if (!isObject(answer)) throw unreadable('an answer is no object');
  const { type } = answer;
  if (type === 'refusal') return { kind: 'refusal' };
  if (asks.kind === 'yes') {
    if (type === 'predicate') return { kind: 'yes', probability: numberOf(answer, 'probability') };
    if (type !== 'choice' || asks.criteria === undefined) throw typeMismatch();
    return { kind: 'yes', probability: weightsOf(answer, 'value', [true, false])[0]! };
  }
  if (type !== asks.kind) throw typeMismatch();
  const confidence = numberOf(answer, 'confidence');
  if (asks.kind === 'choice') {
    const values = asks.options.map(({ value }) => value);
    const at = values.indexOf(answer['choice'] as string);
    if (at === -1) throw unreadable('an answer chooses an unknown option');
    return { kind: 'choice', at, confidence, probabilities: weightsOf(answer, 'value', values) };
  }
  const labels = asks.levels.map(({ label }) => label);
  const probabilities = weightsOf(answer, 'label', labels);
  return { kind: 'score', score: scoreOf(answer, probabilities), confidence, probabilities };
}

/** The probabilities of all keys, in their order. Equal keys differ by their places. */
function weightsOf(answer: JsonObject, member: string, keys: readonly unknown[]): readonly number[] {
  const entries = listOf(answer['probabilities']).map((entry) => (isObject(entry) ? entry : ({} as JsonObject)));
  return keys.map((key, index) => {
    const placed = entries[index];
    const entry = placed?.[member] === key ? placed : entries.find((one) => one[member] === key);
    return numberOf(entry, 'probability');
  });
}

/** On the scale of the levels' places; a vendor may count them by values of its own. */
function scoreOf(answer: JsonObject, probabilities: readonly number[]): number {
  const score = numberOf(answer, 'score');
  const isByPlace = listOf(answer['probabilities']).every(
    (entry, index) => isObject(entry) && entry['value'] === index,
  );
  return isByPlace ? score : probabilities.reduce((sum, probability, index) => sum + probability * index, 0);
}

function encodeAnswer(answer: Answer, { name, asks }: Question): object {
  if (answer.kind === 'refusal') return { type: 'refusal', name };
  if (answer.kind === 'yes') return { type: 'predicate', name, probability: answer.probability };
  const { kind: type, confidence, probabilities } = answer;
  const weighed = (keyed: (index: number) => object) =>
    probabilities.map((probability, index) => ({ ...keyed(index), probability }));
  if (answer.kind === 'choice' && asks.kind === 'choice') {
    const optionAt = (index: number) => ({ value: asks.options[index]!.value });
    return { type, name, choice: optionAt(answer.at).value, confidence, probabilities: weighed(optionAt) };
  }
  if (answer.kind !== 'score' || asks.kind !== 'score') throw typeMismatch();
  const levelAt = (index: number) => ({ label: asks.levels[index]!.label, value: index });
  return { type, name, score: answer.score, confidence, probabilities: weighed(levelAt) };
}

function usageOf(usage: Parameters<Form['encodeAnswers']>[3]): object {
  const { input = 0, cache_read: cached = 0, cache_write_5m: written = 0, output = 0, reasoning = 0 } = usage;
  const [allInput, allOutput] = [input + cached + written, output + reasoning];
  return {
    input_tokens: allInput,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
    output_tokens: allOutput,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: allInput + allOutput,
  };
}
