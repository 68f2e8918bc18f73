/** Decisions as TypeSafe writes them: a state, questions by their ids, and answers by the same ids. Pure. */
import { isObject, type JsonObject, objectOf } from '../../../core/json/json.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { checkLength, isAbsent, unsupportedByModel } from '../checks.ts';
import { unreadable } from '../errors.ts';
import { heldTokens } from '../estimate.ts';
import { wire } from '../wires.ts';
import { describedAs, listIn, numberOf, questionOf, typeMismatch } from './checks.ts';
import { userItem } from './decisions.ts';
import type { Answer, Content, Criteria, Form, Item, Level, Option, Question } from './form.ts';

export const systemoneForm: Form = {
  protocol: wire.typesafeSystemone,
  path: '/systemone',
  measure({ json, bytes }, limits) {
    const { state, questions } = json;
    if (isAbsent(state)) throw invalid('The field "state" is missing.', 'state');
    if (typeof state !== 'string' && typeof state !== 'object')
      throw invalid('The field "state" must be a string, an object or a list.', 'state');
    if (isAbsent(questions)) throw invalid('The field "questions" is missing.', 'questions');
    if (!isObject(questions)) throw invalid('The field "questions" must be an object of questions by id.', 'questions');
    const ids = Object.keys(questions);
    checkLength(ids, 'questions', limits.questions);
    for (const id of ids) questionOf(questions[id], `questions.${id}`, ['criteria']);
    return { questions: ids.length, tokens: heldTokens(bytes.length) };
  },
  read(json) {
    const others = new Set(Object.keys(json).filter((name) => !members.has(name) && !isAbsent(json[name])));
    for (const name of media) if (others.has(name)) throw unsupportedByModel(name, 'it takes texts and data alone');
    const questions = Object.entries(objectOf(json['questions']) ?? {}).map(([id, question]) =>
      readQuestion(id, question as JsonObject, others),
    );
    return { input: [userItem(contentOf(json['state']))], questions, others: [...others] };
  },
  encode: ({ input, questions }, model) => ({
    model,
    state: stateOf(input),
    questions: Object.fromEntries(questions.map((question) => [question.id, encodeQuestion(question)])),
  }),
  readAnswers(json, questions) {
    const answers = objectOf(json['answers']) ?? {};
    return questions.map((question) => {
      const answer = Object.hasOwn(answers, question.id) ? answers[question.id] : undefined;
      return readAnswer(answer, question);
    });
  },
  encodeAnswers: (answers, questions, model, usage) => ({
    model,
    answers: Object.fromEntries(answers.map((answer, at) => [questions[at]!.id, encodeAnswer(answer, questions[at]!)])),
    usage: {
      input_tokens: (usage.input ?? 0) + (usage.cache_read ?? 0) + (usage.cache_write_5m ?? 0),
      output_tokens: (usage.output ?? 0) + (usage.reasoning ?? 0),
    },
  }),
};

const members = new Set(['model', 'state', 'questions']);
/** Members of requests to models that see pictures. */
const media = ['assets', 'images'];
const questionMembers = new Set(['type', 'instructions', 'criteria']);
const [leastLevels, mostLevels] = [2, 10];

function readQuestion(id: string, question: JsonObject, others: Set<string>): Question {
  const field = `questions.${id}`;
  const { type, instructions, criteria } = question;
  for (const name of Object.keys(question)) if (!questionMembers.has(name)) others.add(`questions.${name}`);
  if (isAbsent(instructions)) throw invalid(`The field "${field}.instructions" is missing.`, `${field}.instructions`);
  const base = { field, id, name: id, instructions: contentOf(instructions) };
  if (type === 'noul') return { ...base, asks: { kind: 'yes', criteria: criteriaOf(criteria, field) } };
  if (type === 'score') {
    const levels = listIn(question, 'criteria', field).map(levelOf);
    return { ...base, asks: { kind: 'score', levels } };
  }
  if (type !== 'choice') throw unsupportedByModel(`${field}.type`, 'it takes noul, choice and score');
  if (!isObject(criteria) || Object.keys(criteria).length === 0)
    throw invalid(`The field "${field}.criteria" must be an object of labels.`, `${field}.criteria`);
  const options = Object.entries(criteria).map(([value, said]): Option => ({ value, description: describedAs(said) }));
  return { ...base, asks: { kind: 'choice', options } };
}

const levelOf = (written: unknown): Level => ({
  label: describedAs(written) ?? '',
  description: undefined,
  written,
});

function criteriaOf(criteria: unknown, field: string): Criteria | undefined {
  if (isAbsent(criteria)) return undefined;
  if (!isObject(criteria)) throw invalid(`The field "${field}.criteria" must be an object.`, `${field}.criteria`);
  const said = { true: describedAs(criteria['true']), false: describedAs(criteria['false']) };
  return said.true === undefined && said.false === undefined ? undefined : said;
}

/** Texts and data, in their order; a list of objects is one piece of data. */
function contentOf(value: unknown): readonly Content[] {
  if (!Array.isArray(value) || value.length === 0) return [pieceOf(value)];
  return value.every(isObject) ? [{ kind: 'data', data: value }] : value.map(pieceOf);
}

function pieceOf(value: unknown): Content {
  return isObject(value) ? { kind: 'data', data: value } : { kind: 'text', text: describedAs(value) ?? '' };
}

/** The content of a single message of the user; of a conversation, all that was said and by which role. */
function stateOf(input: readonly Item[]): unknown {
  const [first] = input;
  const isMessage = first?.label['role'] === 'user' && Object.keys(first.label).length === 1;
  if (input.length === 1 && isMessage) return written(first.content ?? []);
  return input.map(({ label, member, content }) =>
    content === undefined ? label : { ...label, [member]: written(content) },
  );
}

function written(content: readonly Content[]): unknown {
  const pieces = content.map((part) => {
    if (part.kind === 'image') throw unsupportedByModel(part.field, 'it takes no images');
    return part.kind === 'text' ? part.text : part.data;
  });
  return pieces.length === 1 ? pieces[0] : pieces;
}

function encodeQuestion({ field, instructions, asks }: Question): object {
  const base = { instructions: written(instructions) };
  if (asks.kind === 'yes') return { type: 'noul', ...base, ...(asks.criteria && { criteria: asks.criteria }) };
  if (asks.kind === 'score') {
    const { length } = asks.levels;
    if (length < leastLevels || length > mostLevels)
      throw unsupportedByModel(`${field}.levels`, `it takes ${leastLevels} to ${mostLevels} levels`);
    const criteria = asks.levels.map(({ label, description }) =>
      description === undefined ? label : `${label}: ${description}`,
    );
    return { type: 'score', ...base, criteria };
  }
  const criteria = new Map(asks.options.map(({ value, description }) => [String(value), description ?? null]));
  if (criteria.size < asks.options.length)
    throw unsupportedByModel(`${field}.choices`, 'it takes no two choices of the same text');
  return { type: 'choice', ...base, criteria: Object.fromEntries(criteria) };
}

function readAnswer(answer: unknown, { asks }: Question): Answer {
  if (!isObject(answer)) throw unreadable('a question has no answer');
  const { type } = answer;
  if (type === 'refusal') return { kind: 'refusal' };
  if (type !== (asks.kind === 'yes' ? 'noul' : asks.kind)) throw typeMismatch();
  if (asks.kind === 'yes') return { kind: 'yes', probability: numberOf(answer, 'noul') };
  const confidence = numberOf(answer, 'confidence');
  const given = objectOf(answer['probabilities']) ?? {};
  const weights = (keys: readonly string[]) =>
    keys.map((key) => numberOf(Object.hasOwn(given, key) ? { [key]: given[key] } : undefined, key));
  if (asks.kind === 'score') {
    const probabilities = weights(asks.levels.map((_, index) => String(index)));
    return { kind: 'score', score: numberOf(answer, 'score'), confidence, probabilities };
  }
  const labels = asks.options.map(({ value }) => String(value));
  const at = labels.indexOf(answer['choice'] as string);
  if (at === -1) throw unreadable('an answer chooses an unknown option');
  return { kind: 'choice', at, confidence, probabilities: weights(labels) };
}

function encodeAnswer(answer: Answer, { asks }: Question): object {
  if (answer.kind === 'refusal') return { type: 'refusal' };
  if (answer.kind === 'yes') return { type: 'noul', noul: answer.probability };
  const { confidence, kind: type } = answer;
  const byKey = (keys: readonly string[], values: readonly unknown[]) =>
    Object.fromEntries(keys.map((key, index) => [key, values[index]]));
  if (answer.kind === 'choice' && asks.kind === 'choice') {
    const labels = asks.options.map(({ value }) => String(value));
    return { type, choice: labels[answer.at], confidence, probabilities: byKey(labels, answer.probabilities) };
  }
  if (answer.kind !== 'score' || asks.kind !== 'score') throw typeMismatch();
  const places = asks.levels.map((_, index) => String(index));
  const legend = byKey(
    places,
    asks.levels.map((level) => level.written),
  );
  return { type, score: answer.score, legend, probabilities: byKey(places, answer.probabilities), confidence };
}
